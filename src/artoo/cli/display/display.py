"""Chooses how a running task is shown: live on a terminal, plain lines elsewhere, or not at all."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from typing import Protocol, TextIO

from artoo.cli.display.plain import PlainDisplay
from artoo.cli.display.symbols import marks_for
from artoo.cli.display.task_state import TaskView


class Progress(StrEnum):
    """What the person wants to see while a task runs."""

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
        """Nothing is drawn while the block runs: somebody else has the terminal."""
        ...

    def update(self) -> None:
        """The view changed."""
        ...


class NoDisplay:
    """Shows nothing."""

    @contextmanager
    def shown(self) -> Generator[None]:
        """Nothing to restore."""
        yield

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Nothing to pause."""
        return nullcontext()

    def update(self) -> None:
        """Nothing to draw."""


def is_plain(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """True where colours and redrawing are unwanted or impossible."""
    dumb = environ.get("TERM", "").lower() in ("", "dumb", "unknown")
    return bool(environ.get("NO_COLOR")) or dumb or not stream.isatty()


def display_for(
    wanted: Progress, stream: TextIO, view: TaskView, environ: Mapping[str, str] | None = None
) -> Display:
    """The display for a stream. `auto` is live on a capable terminal and plain elsewhere."""
    given = os.environ if environ is None else environ
    if wanted is Progress.NONE:
        return NoDisplay()
    marks = marks_for(stream.encoding)
    possible = stream.isatty() and given.get("TERM", "").lower() != "dumb"
    if wanted is Progress.PLAIN or not possible or (wanted is Progress.AUTO and is_plain(stream, given)):
        return PlainDisplay(stream, view, marks)
    from rich.console import Console

    from artoo.cli.display.live import LiveDisplay

    return LiveDisplay(Console(file=stream, highlight=False, markup=False, emoji=False), view, marks)
