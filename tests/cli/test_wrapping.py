"""Long lines end between words on a terminal: by themselves, and as the recordings show it."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from terminal_recording import COLOURS, DIRECTORY, SCENES, name_of, record

from artoo.cli.display.line_wrap import MARK, cells, fold_marked, fold_prose, fold_text, folded, rows_of
from overlay_here import overlay_backend

RED, END = "\x1b[31m", "\x1b[0m"


@given(st.text("ab \t\x1b[31m中—-", max_size=200), st.integers(16, 80), st.sampled_from(["", MARK]))
def test_folding_loses_nothing(line: str, columns: int, mark: str) -> None:
    """The words are the same in the same order, and a row is too wide only where one word is."""
    first, *rest = folded(line, columns, mark)
    bare = [row.lstrip(" ").removeprefix(mark) for row in rest]
    assert " ".join([first, *bare]).split() == line.split()
    assert all(row.lstrip(" ").startswith(mark) for row in rest)
    for row in (first, *bare):
        assert cells(row) <= columns or len(row.split()) == 1


def test_a_row_that_is_no_line_of_its_own_says_so() -> None:
    """A removed check cannot be made to look put back, nor one name like two entries: every further row is marked,
    where the sign of a line of a diff stands or further left."""
    forged = "      +# a note" + " " * 500 + "+    if not verify(blob, sig):" + "\t" * 60 + "+        raise Bad()"
    rows = fold_marked(f"{RED}{forged}{END}", 80).split("\n")
    assert rows[0] == f"{RED}      +# a note" and rows[-1].endswith(END)
    assert all(row.startswith(f"      {MARK}") for row in rows[1:])
    name = fold_marked("  + new  notes.txt (2 B)" + " " * 150 + "+ new  README.md (1 B)", 80)
    assert name.split("\n") == ["  + new  notes.txt (2 B)", f"  {MARK}+ new  README.md (1 B)"]
    assert fold_marked("                  + deep" + " b" * 40, 80).split("\n")[1].startswith(f"      {MARK}b")


def test_a_long_word_stays_beside_its_sign_and_a_colour_ends() -> None:
    """A row of the sign alone would say that the line is empty; blanks at the end do not carry a colour on."""
    long = "x" * 100
    assert folded(f"{RED}      +{long}{END}", 80, MARK) == [f"{RED}      +{long}{END}"]
    assert folded(f"{RED}      +a{' ' * 90}{END}", 80, MARK) == [f"{RED}      +a{END}"]


def test_a_continued_line_stands_below_its_own_text() -> None:
    """Set in as it is; colours take no room; a long path stays in one piece."""
    assert folded("  ~ edited letter.md", 14) == ["  ~ edited", "  letter.md"]
    assert folded(f"{RED}- deleted{END} all of it", 16) == [f"{RED}- deleted{END} all of", "it"]
    assert folded("see /a/very/long/path/to/it now", 10) == ["see", "/a/very/long/path/to/it", "now"]
    assert rows_of(["see /a/very/long/path/to/it now"], 10) == 5
    assert fold_text("one two\n\nthree", 5) == "one\ntwo\n\nthree"


def test_what_is_laid_out_by_its_lines_stays() -> None:
    """Code, what is set in and the rows of a table; the sentences around them are folded."""
    text = "one two three\n```\none two three\n```\n    one two three\n| one | two | three |"
    assert fold_prose(text, 8) == text.replace("one two three", "one two\nthree", 1)


@pytest.mark.parametrize("colours", list(COLOURS), ids=["colours", "plain"])
def test_a_recording_is_what_a_terminal_shows(tmp_path: Path, colours: bool) -> None:
    """Played again in tmux, the review ends with the same rows (terminal_recording.py makes them)."""
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    home = Path(os.path.realpath(tmp_path)) / "person"
    home.mkdir()
    asyncio.run(overlay_backend(home / ".artoo"))
    scene = next(each for each in SCENES if each.name == "review")
    made = asyncio.run(record(scene, 80, colours, home))
    kept = (DIRECTORY / name_of(scene, 80, colours)).read_text(encoding="utf-8")
    assert _at_the_end(made) == _at_the_end(kept)


def _at_the_end(recording: str) -> tuple[str, list[str]]:
    """Return the rows of the last screen, and the words of the line of costs, which prompts make longer."""
    above, _, cost = recording.partition("--- at the end")[2].rpartition("\ntask ")
    return above, cost.split()
