// The files for browsers, as they are in the directory Pages.
#ifndef LARDER_CWEBPAGES_H
#define LARDER_CWEBPAGES_H

#include <stddef.h>

struct larder_web_page {
  const char *path;
  const char *type;
  const unsigned char *bytes;
  size_t length;
};

// Returns the file with that number, from 0 on; NULL after the last one.
const struct larder_web_page *larder_web_page_at(size_t index);

#endif
