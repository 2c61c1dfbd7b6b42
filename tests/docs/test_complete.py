"""The pages leave nothing out: rooms, commands, sections of the configuration, kinds of permissions."""

from __future__ import annotations

import re
from pathlib import Path

from artoo.cli.commands.group import SECTIONS, SERVERS
from artoo.loops.heuristics import NAMES
from artoo.runtime.config.model import Config
from artoo.tools.approval.policy import FILE_KINDS, OPENING_KINDS, OTHER_KINDS

ROOT = Path(__file__).parents[2]
KINDS = (*FILE_KINDS, *OTHER_KINDS, *OPENING_KINDS)


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def rooms() -> set[str]:
    """The folders of the program."""
    return {path.parent.name for path in (ROOT / "src" / "artoo").glob("*/__init__.py")}


def test_the_house_has_every_room() -> None:
    """On its page, and in the rules of who imports whom."""
    named = set(re.findall(r"^ {6}(\w+)/", text("docs/design/overview.md"), re.MULTILINE))
    assert named == rooms()
    order = re.findall(r"^ {4}(?:  → )?([a-z |]+)$", text("CONTRIBUTING.md"), re.MULTILINE)
    assert {room for line in order for room in re.findall(r"\w+", line)} == rooms()


def test_the_manual_names_every_command() -> None:
    """Also those that have a page of their own."""
    page = text("docs/cli.md")
    listed = [name for table in SECTIONS.values() for name in table]
    served = [f"serve {name}" for name in SERVERS if name != "team"]
    assert [name for name in (*listed, *served) if f"artoo {name}" not in page] == []


def test_the_configurations_page_names_every_section() -> None:
    """Each has its line in the table, and no other is there."""
    table = text("docs/configuration.md").partition("## Sections")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(Config.model_fields)


def test_every_kind_of_permission_is_explained() -> None:
    """In the table of the page, and in the comment of the configuration that `artoo init` writes."""
    table = text("docs/safety.md").partition("## Standing permissions")[2].partition("## Taking it back")[0]
    assert set(re.findall(r"^\| `(\w+) ", table, re.MULTILINE)) == set(KINDS)
    template = text("src/artoo/runtime/config/template.yaml")
    comment = template.partition("# Standing permissions")[2].partition("allow:")[0]
    assert [kind for kind in KINDS if not re.search(rf"\b{kind}\b", comment)] == []


def test_every_rule_of_thumb_has_its_figure() -> None:
    """What `control.without` takes is named where its worth stands."""
    figures = text("docs/figures.md")
    assert [name for name in NAMES if f"`{name}`" not in figures] == []
