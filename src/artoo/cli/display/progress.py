"""Show how far a long reading or a download is, in one line of standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click

from artoo.cli.display.side_channel import MEGABYTE

_FIRST_SECONDS = 1.0
"""What takes no longer needs no line."""
_EVERY_SECONDS = 0.2


@contextmanager
def progress_line(*, elsewhere: bool) -> Generator[Callable[[int, int, str], None]]:
    """Yield a function that shows bytes done, bytes in all and the phase.

    A terminal's line is rewritten, and erased at the end. `elsewhere`: without a terminal, a line for each tenth.
    """
    redraws, shown, due = sys.stderr.isatty(), "", time.monotonic() + _FIRST_SECONDS

    def show(done: int, total: int, phase: str) -> None:
        nonlocal shown, due
        step = 1 if redraws else 10
        percent = min(100, 100 * done // max(1, total)) // step * step
        line = f"{phase}: {percent}% of {total / MEGABYTE:,.0f} MB"
        if redraws and time.monotonic() >= due:
            shown, due = line, time.monotonic() + _EVERY_SECONDS
            click.echo(f"\r\x1b[K{line}", err=True, nl=False)
        elif elsewhere and not redraws and line != shown:
            shown = line
            click.echo(line, err=True)

    try:
        yield show
    finally:
        if redraws and shown:
            click.echo("\r\x1b[K", err=True, nl=False)


@contextmanager
def reading_progress(what: str, total: int) -> Generator[Callable[[int], None]]:
    """Yield a function that takes the number of bytes that were read since its last call."""
    done = 0

    def add(count: int) -> None:
        nonlocal done
        done += count
        show(done, total, what)

    with progress_line(elsewhere=False) as show:
        yield add
