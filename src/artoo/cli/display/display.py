"""Chooses how a running task is shown: live on a terminal, plain lines elsewhere, or not at all."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from typing import Protocol, TextIO

from artoo.cli.display.plain import PlainDisplay
from artoo.cli.display.task_state import TaskView


class Progress(StrEnum):
    """The kind of progress display."""

    AUTO = "auto"
    LIVE = "live"
    PLAIN = "plain"
    NONE = "none"


class Display(Protocol):
    """Shows a view while a task runs."""

    def shown(self) -> AbstractContextManager[None]:
        """Shows it while the block runs; afterwards the terminal is as it was."""
        ...

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Stop drawing while the block runs, because something else has the terminal."""
        ...

    def update(self) -> None:
        """Show the changes of a task."""
        ...


class NoDisplay:
    """Shows nothing."""

    @contextmanager
    def shown(self) -> Generator[None]:
        """Run the block."""
        yield

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Return an empty context."""
        return nullcontext()

    def update(self) -> None:
        """Ignore a change."""


def is_plain(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Check whether colours and redrawing are unwanted or impossible."""
    dumb = environ.get("TERM", "").lower() in ("", "dumb", "unknown")
    return bool(environ.get("NO_COLOR")) or dumb or not stream.isatty()


def display_for(
    wanted: Progress, stream: TextIO, view: TaskView, environ: Mapping[str, str] | None = None
) -> Display:
    """Choose the display for a stream. `auto` is live on a capable terminal and plain elsewhere."""
    given = os.environ if environ is None else environ
    if wanted is Progress.NONE:
        return NoDisplay()
    possible = stream.isatty() and given.get("TERM", "").lower() != "dumb"
    if wanted is Progress.PLAIN or not possible or (wanted is Progress.AUTO and is_plain(stream, given)):
        return PlainDisplay(stream, view)
    from rich.console import Console

    from artoo.cli.display.live import LiveDisplay

    return LiveDisplay(Console(file=stream, highlight=False, markup=False, emoji=False), view)
