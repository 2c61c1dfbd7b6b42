"""Whatever the sources and the documentation cite is in the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "docs" / "paper.md"
_SECTION = re.compile(r"paper,?\s+(?:section|§)\s*(\d+(?:\.\d+)?)")
_SPEC = re.compile(r"SPEC,?\s+sections?\s*(\d+)")
_LINK = re.compile(r"\]\(([^)\s#]+)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def texts() -> Iterator[tuple[Path, str]]:
    """All sources and pages."""
    for folder, ending in (("src", "*.py"), ("docs", "*.md")):
        for path in sorted((ROOT / folder).rglob(ending)):
            yield path, path.read_text(encoding="utf-8")


def test_every_cited_section_is_on_the_page() -> None:
    """The paper's sections by their headings, the specification's in the table."""
    page = PAPER.read_text(encoding="utf-8")
    for path, text in texts():
        for section in _SECTION.findall(text):
            assert re.search(rf"^## Section {re.escape(section)}(?!\d)", page, re.MULTILINE), f"{path}: {section}"
        for section in _SPEC.findall(text):
            assert re.search(rf"^\| {section} ", page, re.MULTILINE), f"{path}: SPEC section {section}"


def anchor_of(heading: str) -> str:
    """As common renderers write it."""
    kept = "".join(each for each in heading.strip().lower() if each.isalnum() or each in " -_")
    return kept.replace(" ", "-")


def test_every_page_is_named_on_the_first_one() -> None:
    """Who begins there finds all of them, and the site has them in its contents."""
    first = ROOT / "docs" / "README.md"
    named = {(first.parent / target).resolve() for target, _ in _LINK.findall(first.read_text(encoding="utf-8"))}
    assert set((ROOT / "docs").rglob("*.md")) - {first} <= named


def test_no_link_of_the_documentation_is_dead() -> None:
    """Neither a page nor a heading in it."""
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for page in pages:
        for target, anchor in _LINK.findall(page.read_text(encoding="utf-8")):
            if "://" in target or target.startswith("mailto:"):
                continue
            found = (page.parent / target).resolve()
            assert found.exists(), f"{page}: {target}"
            if anchor:
                headings = map(anchor_of, _HEADING.findall(found.read_text(encoding="utf-8")))
                assert anchor in list(headings), f"{page}: {target}#{anchor}"
