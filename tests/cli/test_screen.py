"""The size of the terminal that a question stands on."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios

import pytest

from artoo.cli.display.colors import Paint
from artoo.cli.display.line_wrap import MARK, PLAIN_MARK
from artoo.cli.display.screen import Screen, show_lines


@pytest.mark.parametrize(
    ("told", "size"), [((0, 0), (80, 24)), ((50, 0), (80, 50)), ((0, 132), (132, 24)), ((50, 132), (132, 50))]
)
def test_what_a_terminal_was_not_told_is_as_usual(
    told: tuple[int, int], size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some have 0 columns until somebody says how many there are; a text of one word a line is no use."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("LINES", raising=False)
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as stream:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *told, 0, 0))
        assert tuple(Screen(stream, Paint(colours=False)).size()) == size
    os.close(master)


@pytest.mark.parametrize(("encoding", "mark"), [("utf-8", MARK), ("ascii", PLAIN_MARK)])
def test_a_further_row_is_marked_in_any_encoding(encoding: str, mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that cannot show the sign gets another one, not a name of the sign."""
    monkeypatch.setenv("COLUMNS", "60")
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Screen(stream, Paint(colours=False)).say("  ~ edited " + "word " * 20 + "\n")
    stream.seek(0)
    assert stream.read().split("\n")[1].startswith(f"  {mark}word")


def test_in_a_pipe_lines_stay_whole(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A letter or a diff that goes into a file is not broken at the width of some terminal."""
    monkeypatch.setenv("COLUMNS", "20")
    line = "a line that is longer than the terminal is wide  "
    show_lines([line])
    show_lines([line], prose=True)
    assert capsys.readouterr().out == f"{line}\n{line}\n"
