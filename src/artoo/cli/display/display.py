"""The choice of the progress display by `--progress` (live, plain lines or none), and its base class."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from enum import StrEnum
from typing import TextIO

from artoo.cli.display.colors import is_plain
from artoo.cli.display.task_state import TaskView


class Progress(StrEnum):
    """The kind of progress display."""

    AUTO = "auto"
    LIVE = "live"
    PLAIN = "plain"
    NONE = "none"


class Display:
    """The base class of displays of a running task. It shows nothing itself."""

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show the task while the block runs. Restore the terminal afterwards."""
        yield

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Stop drawing while the block runs, because something else uses the terminal."""
        return nullcontext()

    def update(self) -> None:
        """Show what has changed in the task's state."""


def display_for(
    wanted: Progress, stream: TextIO, view: TaskView, environ: Mapping[str, str] | None = None
) -> Display:
    """Return the display for a stream. With `auto` it is a live display if the terminal allows it, and plain lines
    otherwise."""
    from artoo.cli.display.plain import PlainDisplay

    given = os.environ if environ is None else environ
    if wanted is Progress.NONE:
        return Display()
    possible = stream.isatty() and given.get("TERM", "").lower() != "dumb"
    if wanted is Progress.PLAIN or not possible or (wanted is Progress.AUTO and is_plain(stream, given)):
        return PlainDisplay(stream, view)
    from rich.console import Console

    from artoo.cli.display.live import LiveDisplay

    return LiveDisplay(Console(file=stream, highlight=False, markup=False, emoji=False), view)
