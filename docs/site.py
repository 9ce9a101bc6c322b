#!/usr/bin/env python3
"""Builds the pages of docs, the README, the changelog and the DocC articles as HTML with a sidebar: `make html`.

    docs/site.py OUTPUT

Fails if a link leads to a page or a heading that does not exist. Needs python3-markdown.
"""
import os
import re
import shutil
import sys
from urllib.parse import quote

import markdown

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECTIONS = [
    ("Start", ["README.md", "CHANGELOG.md"]),
    ("Use", ["docs/" + name + ".md" for name in
             ["Operating", "Freshness", "Origins", "Clients", "Queries", "Protocol", "Limits", "SECURITY"]]),
    ("Library", "Sources/Larder/Larder.docc"),
    ("Swift client", "Sources/LarderClient/LarderClient.docc"),
    ("Develop", ["docs/" + name + ".md" for name in
                 ["Architecture", "StorageFormat", "Testing", "Benchmarks", "CONTRIBUTING"]]),
]
STYLE = """
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; color: #222; display: flex; }
nav { flex: 0 0 230px; height: 100vh; position: sticky; top: 0; overflow: auto; background: #f5f5f2; padding: 16px;
  box-sizing: border-box; font-size: 14px; }
nav h2 { font-size: 13px; color: #666; margin: 16px 0 4px; } nav a { display: block; padding: 2px 0; color: #222; }
nav a.here { font-weight: bold; } main { max-width: 900px; padding: 16px 40px 60px; min-width: 0; }
a { color: #1b5e20; text-decoration: none; } a:hover { text-decoration: underline; } a:not([href]) { color: inherit; text-decoration: none; }
pre { background: #f5f5f2; padding: 10px; overflow: auto; } code { font-size: 14px; } img { max-width: 100%; }
table { border-collapse: collapse; display: block; overflow: auto; } td, th { border: 1px solid #ddd; padding: 4px 8px;
  text-align: left; vertical-align: top; }
@media (max-width: 800px) { body { display: block; } nav { height: auto; position: static; } main { padding: 16px; } }
"""


def slug(heading, _separator=None):
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def articles(directory):
    names = sorted(n for n in os.listdir(os.path.join(ROOT, directory)) if n.endswith(".md"))
    return [os.path.join(directory, name) for name in names]


def place(page):
    """Where a page is in the site."""
    name = re.sub(r"^docs/|^Sources/\w+/|\.docc", "", page[:-3])
    return "index.html" if page == "README.md" else name.replace("/", "-") + ".html"


def html(page, pages):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        text = file.read()
    if ".docc/" in page:
        # Symbols of DocC are code here, links between articles are links.
        text = re.sub(r"``([^`\n]+)``", lambda m: "`" + m[1].split("/")[-1] + "`", text)
        names = {os.path.basename(p)[:-3]: p for p in pages}
        # Only DocC has tutorials. `docs/html.sh` checks the links to them.
        text = re.sub(
            r"<doc:(\w+)>",
            lambda m: m[1] if m[1].endswith("Tutorials") else "[%s](%s)" % (m[1], os.path.basename(names[m[1]])), text)
    # Lists need an empty line before them here, and two spaces do not indent their code.
    text = re.sub(r"(?m)^((?!- |\s|\|).+)\n(- )", r"\1\n\n\2", text)
    return markdown.markdown(text, extensions=["tables", "fenced_code", "toc"], tab_length=2,
                             extension_configs={"toc": {"slugify": slug}})


def relinked(body, page, pages, assets):
    """The page with links to other pages, and without those that leave the site."""
    def link(match):
        target, _, anchor = match[2].partition("#")
        if re.match(r"\w+:", target):
            return match[0]
        path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
        if path in pages:
            return '<a href="%s"' % (quote(place(path)) + ("#" + anchor if anchor else ""))
        return "<a"

    def image(match):
        path = os.path.normpath(os.path.join(os.path.dirname(page), match[2]))
        assets.add(path)
        return 'src="%s"' % quote(path)

    body = re.sub(r'<a( \w+="[^"]*")*? href="([^"]*)"', link, body)
    return re.sub(r'(src)="([^":]*)"', image, body)


def main():
    output = sys.argv[1]
    sections = [(title, articles(pages) if isinstance(pages, str) else pages) for title, pages in SECTIONS]
    pages = [page for _, group in sections for page in group]
    missing = {"docs/" + n for n in os.listdir(os.path.join(ROOT, "docs")) if n.endswith(".md")} - set(pages)
    if missing:
        sys.exit("not in the sidebar of docs/site.py: " + ", ".join(sorted(missing)))
    os.makedirs(output, exist_ok=True)
    bodies, assets = {}, set()
    for page in pages:
        bodies[page] = relinked(html(page, pages), page, pages, assets)
    titles = {page: re.sub("<[^>]+>", "", re.search(r"<h1[^>]*>(.*?)</h1>", body)[1]) for page, body in bodies.items()}
    ids = {place(page): set(re.findall(r'id="([^"]*)"', body)) for page, body in bodies.items()}
    problems = []
    for page, body in bodies.items():
        for target, anchor in re.findall(r'<a href="([^":#]*)(?:#([^"]*))?"', body):
            if target not in ids or anchor and anchor not in ids[target]:
                problems.append("%s: %s#%s" % (page, target, anchor))
        sidebar = "".join(
            "<h2>%s</h2>" % title + "".join(
                '<a%s href="%s">%s</a>' % (' class="here"' if p == page else "", quote(place(p)), titles[p])
                for p in group)
            for title, group in sections)
        with open(os.path.join(output, place(page)), "w", encoding="utf-8") as file:
            file.write('<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
                       '<meta name="viewport" content="width=device-width, initial-scale=1"><title>%s</title>'
                       "<style>%s</style></head>\n<body><nav>%s</nav>\n<main>%s</main></body></html>\n"
                       % (titles[page], STYLE, sidebar, body))
    for asset in assets:
        os.makedirs(os.path.dirname(os.path.join(output, asset)), exist_ok=True)
        shutil.copy(os.path.join(ROOT, asset), os.path.join(output, asset))
    if problems:
        sys.exit("broken links:\n" + "\n".join(problems))
    print("%d pages in %s" % (len(pages), os.path.join(output, "index.html")))


main()
