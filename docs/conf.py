"""The site of the documents: Sphinx reads each Markdown file where it is. `./dev docs` builds it.

The sections of docs/README.md are the sections of the navigation. A page that is not listed there stands below the README of the
nearest folder around it.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("bench", "conformance", "core", "docs", "fuzz", "plugins", "samples", "sdk", "tests")
LINK = re.compile(r"\]\(([^)#:]+)\.md\)")

project = html_title = "ltc"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", *(f"{folder}/**.md" for folder in FOLDERS)]
exclude_patterns = ["core/ops/opset_intro.md"]  # the beginning of docs/opset.md
suppress_warnings = ["misc.highlighting_failure"]  # of a part of a file
highlight_language = "text"
myst_heading_anchors = 6
html_theme = "furo"
html_static_path = html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False


def listed():
    """The pages in each section of docs/README.md, in its order; each page once."""
    sections, seen = {}, {root_doc}
    for section in (ROOT / "docs/README.md").read_text().split("\n## ")[1:]:
        pages = [(ROOT / "docs" / name).resolve().relative_to(ROOT).as_posix() for name in LINK.findall(section)]
        sections[section.partition("\n")[0]] = [page for page in dict.fromkeys(pages) if page not in seen]
        seen.update(pages)
    return sections


def parent(page, pages):
    """The README of the nearest folder around a page."""
    readmes = [(folder / "README").as_posix() for folder in Path(page).parents]
    return next(readme for readme in readmes if readme in pages and readme != page)


def add_navigation(app, page, source):
    """Ends a page with the lists of the pages below it."""
    pages, sections = app.env.found_docs, listed()
    elsewhere = {root_doc}.union(*sections.values())
    below = {"Folders": sorted(other for other in pages - elsewhere if parent(other, pages) == page)}
    for title, names in (sections | below if page == root_doc else below).items():
        if names:
            links = "\n".join(f"/{name}" for name in names)
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{links}\n```\n"


def setup(app):
    app.connect("source-read", add_navigation)
