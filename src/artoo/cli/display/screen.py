"""The terminal that shows a question: its size, its colours, and one way to write on it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TextIO

import click

from artoo.cli.display.colors import Paint, is_plain
from artoo.cli.display.line_wrap import MARK, PLAIN_MARK, fold_marked, fold_prose, rows_of
from artoo.cli.display.sanitize import print_json, printable, show_as_it_is

NARROWEST, WIDEST = 60, 200
"""Columns that a layout is made for. A narrower terminal wraps lines by itself."""


@dataclass(frozen=True, slots=True)
class Screen:
    """A terminal with its colours."""

    stream: TextIO
    paint: Paint

    @classmethod
    def of(cls, stream: TextIO) -> Screen:
        """Return the screen of a stream, with colours where they are wanted and possible."""
        return cls(stream, Paint(colours=not is_plain(stream, os.environ)))

    def say(self, text: str) -> None:
        """Write text that is safe to print, folded between words. Characters without an encoding are escaped."""
        encoding = self.stream.encoding or "ascii"
        # A mark that the encoding lacks would be escaped, and be longer than the fold allows for.
        has_mark = MARK.encode(encoding, "ignore").decode(encoding) == MARK
        text = fold_marked(text, self.size().columns, MARK if has_mark else PLAIN_MARK)
        self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self.stream.flush()

    def show(self, lines: Iterable[str]) -> None:
        """Write lines, each with its end."""
        self.say("".join(f"{line}\n" for line in lines))

    def fits(self, lines: Iterable[str]) -> bool:
        """Check whether all lines are in sight at once, with room for a question below them."""
        size = self.size()
        return rows_of(lines, size.columns) < size.lines - 1

    def size(self) -> os.terminal_size:
        """Return the columns and rows now. Some terminals report 0 until they are told their size."""
        usual = shutil.get_terminal_size()
        try:
            own = os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError):
            return usual
        return os.terminal_size((own.columns or usual.columns, own.lines or usual.lines))

    @property
    def width(self) -> int:
        """Return the columns to lay text out for."""
        return min(max(self.size().columns, NARROWEST), WIDEST)


def show_lines(
    lines: Iterable[str], stream: TextIO | None = None, *, prose: bool = False, painted: bool = False
) -> None:
    """Print lines on standard output or `stream`. Lines that are not `painted` are made safe first.

    In a pipe each line stays whole. On a terminal a long line is folded between words, and its further rows have
    a mark, because a name with many blanks could look like several lines. Rows of `prose` have no mark.
    """
    text = "\n".join(lines)
    text = text if painted else printable(text)
    screen = Screen(stream or sys.stdout, Paint())
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
