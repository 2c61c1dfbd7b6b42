"""Every mistake of the first version has its row, and every test that is named there is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "design" / "first-version.md"
_ROW = re.compile(r"^\| (\d*) ?\|.*\| (.*) \|$", re.MULTILINE)
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
WITHOUT = {7}
"""What a model makes of a request; the page says so."""


def test_every_row_names_tests_that_are_there() -> None:
    """1 to 25, each with a test of its own, or with the reason why there is none."""
    shown: dict[int, list[tuple[str, str]]] = {}
    number = 0
    for given, by in _ROW.findall(PAGE.read_text(encoding="utf-8")):
        number = int(given) if given else number
        shown.setdefault(number, []).extend(_TEST.findall(by))
    shown.pop(0, None)
    assert set(shown) == set(range(1, 26))
    assert {row for row, tests in shown.items() if not tests} == WITHOUT
    for path, name in (test for tests in shown.values() for test in tests):
        assert re.search(rf"^(?:async )?def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (
            name
        )
