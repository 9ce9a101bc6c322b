// The web pages, embedded by the compiler, so that the program needs no other files.
#include "cwebpages.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char index_html[] = {
#embed "Pages/top.html" suffix(, )
#embed "Pages/index.html" suffix(, )
#embed "Pages/bottom.html"
};
static const unsigned char entries_html[] = {
#embed "Pages/top.html" suffix(, )
#embed "Pages/entries.html" suffix(, )
#embed "Pages/bottom.html"
};
static const unsigned char queries_html[] = {
#embed "Pages/top.html" suffix(, )
#embed "Pages/queries.html" suffix(, )
#embed "Pages/bottom.html"
};
static const unsigned char login_html[] = {
#embed "Pages/login.html"
};
static const unsigned char style_css[] = {
#embed "Pages/style.css"
};
static const unsigned char common_js[] = {
#embed "Pages/common.js"
};
static const unsigned char theme_js[] = {
#embed "Pages/theme.js"
};
static const unsigned char charts_js[] = {
#embed "Pages/charts.js"
};
static const unsigned char overview_js[] = {
#embed "Pages/overview.js"
};
static const unsigned char entries_js[] = {
#embed "Pages/entries.js"
};
static const unsigned char queries_js[] = {
#embed "Pages/queries.js"
};
static const unsigned char icon_svg[] = {
#embed "Pages/icon.svg"
};

#define PAGE(path, type, bytes) {path, type, bytes, sizeof(bytes)}
#define HTML "text/html; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"

static const struct larder_web_page pages[] = {
    PAGE("/", HTML, index_html),
    PAGE("/entries", HTML, entries_html),
    PAGE("/queries", HTML, queries_html),
    PAGE("/login", HTML, login_html),
    PAGE("/style.css", "text/css; charset=utf-8", style_css),
    PAGE("/common.js", SCRIPT, common_js),
    PAGE("/theme.js", SCRIPT, theme_js),
    PAGE("/charts.js", SCRIPT, charts_js),
    PAGE("/overview.js", SCRIPT, overview_js),
    PAGE("/entries.js", SCRIPT, entries_js),
    PAGE("/queries.js", SCRIPT, queries_js),
    PAGE("/icon.svg", "image/svg+xml", icon_svg),
};

const struct larder_web_page *larder_web_page_at(size_t index) {
  return index < sizeof(pages) / sizeof(pages[0]) ? &pages[index] : NULL;
}
