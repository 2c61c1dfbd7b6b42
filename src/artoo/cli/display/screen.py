"""A terminal with the limits of its layout width and colours, and output of lines or JSON."""

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
"""Minimum and maximum width of a layout in columns. A narrower terminal wraps the lines itself."""


@dataclass(frozen=True, slots=True)
class Screen:
    """A terminal, and the colours that are used on it."""

    stream: TextIO
    paint: Paint

    @classmethod
    def of(cls, stream: TextIO) -> Screen:
        """Return the screen of a stream, with colours if they are wanted and possible."""
        return cls(stream, Paint(colours=not is_plain(stream, os.environ)))

    def say(self, text: str) -> None:
        """Write text that is safe to print, wrapped between words. Characters that the encoding lacks are
        escaped."""
        encoding = self.stream.encoding or "ascii"
        # If the encoding lacked the mark, it would be escaped and then be longer than the wrapping assumes.
        has_mark = MARK.encode(encoding, "ignore").decode(encoding) == MARK
        text = fold_marked(text, self.size().columns, MARK if has_mark else PLAIN_MARK)
        self.stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self.stream.flush()

    def show(self, lines: Iterable[str]) -> None:
        """Write lines. A line end is added to each."""
        self.say("".join(f"{line}\n" for line in lines))

    def fits(self, lines: Iterable[str]) -> bool:
        """Return whether all lines, and a question below them, fit on the screen at the same time."""
        size = self.size()
        return rows_of(lines, size.columns) < size.lines - 1

    def size(self) -> os.terminal_size:
        """Return the present numbers of columns and rows. Some terminals report 0, which is replaced by the usual
        size."""
        usual = shutil.get_terminal_size()
        try:
            own = os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError):
            return usual
        return os.terminal_size((own.columns or usual.columns, own.lines or usual.lines))

    @property
    def width(self) -> int:
        """Return the number of columns for which text is formatted."""
        return min(max(self.size().columns, NARROWEST), WIDEST)


def show_lines(
    lines: Iterable[str], stream: TextIO | None = None, *, prose: bool = False, painted: bool = False
) -> None:
    """Print lines on standard output, or on `stream`. Unless `painted` is true, invisible characters are escaped.

    In a pipe, a line is never wrapped. On a terminal, a long line is wrapped between words. Continuation rows have
    a mark, because a name with many blanks could look like several lines. With `prose`, they have no mark.
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
