"""The terminal that a question stands on: its size, what it can show, and one way to write on it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO

import click

from artoo.cli.display.colors import Paint
from artoo.cli.display.line_wrap import MARK, PLAIN_MARK, fold_marked, fold_prose
from artoo.cli.display.sanitize import print_json, printable, show_as_it_is

NARROWEST, WIDEST = 60, 200
"""Columns that a layout is made for. A narrower terminal wraps lines by itself."""

ERASE_LINE = "\r\x1b[K"


@dataclass(frozen=True, slots=True)
class Screen:
    """A terminal. `redraws`: it can erase a line, so a prompt for single keys may come and go."""

    stream: TextIO
    paint: Paint
    redraws: bool

    def say(self, text: str) -> None:
        """Writes text that is safe to print, its lines ended between words; what has no encoding is written out."""
        encoding = self.stream.encoding or "ascii"
        has_mark = MARK.encode(encoding, "ignore").decode(encoding) == MARK
        text = fold_marked(text, self.size().columns, MARK if has_mark else PLAIN_MARK)
        self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self.stream.flush()

    def size(self) -> os.terminal_size:
        """Columns and rows now; a window may change while somebody reads. 0: the terminal was not told."""
        usual = shutil.get_terminal_size()
        try:
            own = os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError):
            return usual
        return os.terminal_size((own.columns or usual.columns, own.lines or usual.lines))

    @property
    def width(self) -> int:
        """Columns to lay text out for."""
        return min(max(self.size().columns, NARROWEST), WIDEST)


def show_lines(
    lines: Iterable[str], stream: TextIO | None = None, *, prose: bool = False, painted: bool = False
) -> None:
    """Lines on standard output or `stream`, made safe; `painted`: they are, and may have artoo's own colours. In a
    pipe each stays whole.

    On a terminal what is too long ends between words, and its further rows are marked: a name with many blanks
    would look like several lines of artoo's. `prose`, as a letter, is not marked.
    """
    text = "\n".join(lines)
    text = text if painted else printable(text)
    screen = Screen(stream or sys.stdout, Paint(), redraws=False)
    if prose or not screen.stream.isatty():
        whole = fold_prose(text, screen.size().columns) if screen.stream.isatty() else text
        if stream is None:
            show_as_it_is(whole)
        else:
            click.echo(whole, file=stream)
    else:
        screen.say(text + "\n")


def report(found: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print `found` as JSON for programs, or `lines` for people."""
    if as_json:
        print_json(found)
    else:
        show_lines(lines)
