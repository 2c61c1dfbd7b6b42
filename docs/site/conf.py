"""How the pages of the repository become a site: `make docs`. They are plain Markdown and know nothing of it."""

from __future__ import annotations

import os
import re
from importlib.metadata import version as installed
from pathlib import Path

from sphinx.application import Sphinx

project = "artoo"
author = "the artoo authors"
version = release = installed("artoo")

extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "docs/**/*.md"]
exclude_patterns = [".*", "src", "tests", "benchmarks", "build", "dist", "requirements"]
myst_heading_anchors = 4
nitpicky = True
html_theme = "furo"
html_title = f"artoo {release}"
html_theme_options = {"sidebar_hide_name": False}
html_copy_source = False
html_show_sphinx = False

_CONTENTS = "docs/README"
_PAGE = re.compile(r"\]\(([\w./-]+)\.md\)")


def _with_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """What the documentation's first page links to, in its order, are the contents: a page that it does not name is
    a warning."""
    if page == root_doc:
        text = Path(app.srcdir, f"{_CONTENTS}.md").read_text(encoding="utf-8")
        pages = [_CONTENTS, *(os.path.normpath(f"docs/{name}") for name in dict.fromkeys(_PAGE.findall(text)))]
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```\n"


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _with_contents)
