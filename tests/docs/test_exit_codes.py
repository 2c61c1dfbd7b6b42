"""The exit codes that the pages state are those of the program."""

from __future__ import annotations

import re
from pathlib import Path

from artoo.cli.commands import exit_codes
from artoo.cli.commands.run_command import run

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
MEANT = {
    exit_codes.ACCEPTED: "success. The result names the criteria that are not met",
    exit_codes.FAILED: "abandoned",
    exit_codes.USAGE: "usage or configuration",
    exit_codes.NO_MODEL: "no language model",
    exit_codes.PENDING: "changes wait",
    exit_codes.NEEDS_INPUT: "ended with a question",
    exit_codes.INTERRUPTED: "interrupted",
}


def test_the_pages_exit_codes_are_those_of_the_program() -> None:
    """Each code of the program has its row, with its meaning, and no other has one; the help says the same."""
    section = PAGE.read_text(encoding="utf-8").partition("### Exit codes")[2].partition("###")[0]
    rows = {int(code): meaning for code, meaning in re.findall(r"^\| (\d+) \| (.*) \|$", section, re.MULTILINE)}
    assert rows.keys() == MEANT.keys()
    assert all(words in rows[code] for code, words in MEANT.items()), rows
    assert all(str(code) in (run.help or "") for code in MEANT)
