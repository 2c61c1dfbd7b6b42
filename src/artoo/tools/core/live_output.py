"""Show a running command's last lines at an interval, with secrets redacted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from artoo.ports.printing import Heard, OnOutput, Printed, unheard
from artoo.tools.core.truncate import without_terminal_codes

LINES_TOLD = 8
LONGEST_LINE = 400
"""Maximum number of characters of a line that is reported. A terminal shows fewer."""
EVERY_SECONDS = 0.2
_WINDOW_BYTES = 16 * 1024
"""Number of bytes of output that are kept for the next report. A secret of several lines is found only if its
beginning is among these bytes."""


@dataclass(frozen=True, slots=True)
class Printing:
    """Reports the output of a task's running commands to `told`. `redacted` removes secrets from a text."""

    task_id: str
    told: OnOutput
    redacted: Callable[[str], str]

    @contextmanager
    def of(self, act: str) -> Generator[Heard]:
        """Provide a listener for the output of one command. Nothing is reported after the block has ended."""
        tail = _Tail(lambda lines: self.told(Printed(self.task_id, act, lines)), self.redacted)
        try:
            yield tail.add
        finally:
            tail.close()


@contextmanager
def printing_of(printing: Printing | None, act: str) -> Generator[Heard]:
    """Provide a listener of `printing`, or one that ignores the output if `printing` is None."""
    if printing is None:
        yield unheard
        return
    with printing.of(act) as heard:
        yield heard


class _Tail:
    """The end of a command's output. Output that follows soon after a report is reported with the next one."""

    def __init__(self, tell: Callable[[tuple[str, ...]], None], redacted: Callable[[str], str]) -> None:
        self._tell = tell
        self._redacted = redacted
        self._window = bytearray()
        self._cut = False
        self._closed = False
        self._next: asyncio.TimerHandle | None = None

    def add(self, written: bytes) -> None:
        """Add output, and keep only its end. The report follows after a short delay, so that it includes output
        that comes soon after."""
        if self._closed:
            # The command continues after the call, but this call no longer listens.
            return
        self._window += written[-_WINDOW_BYTES:]
        if len(self._window) > _WINDOW_BYTES or len(written) > _WINDOW_BYTES:
            self._cut = True
            del self._window[:-_WINDOW_BYTES]
        if self._next is None:
            self._next = asyncio.get_running_loop().call_later(EVERY_SECONDS, self._report)

    def close(self) -> None:
        self._closed = True
        if self._next is not None:
            self._next.cancel()

    def _report(self) -> None:
        self._next = None
        self._tell(self._lines())

    def _lines(self) -> tuple[str, ...]:
        """Return the last lines as a terminal would show them. Text that a carriage return overwrote is left
        out."""
        whole = self._redacted(bytes(self._window).decode("utf-8", "replace"))
        rows = without_terminal_codes(whole).split("\n")
        # The first row is incomplete, so it may be a part of a secret and is not shown.
        if self._cut:
            rows[:1] = [] if len(rows) > 1 else [rows[0][-LONGEST_LINE:]]
        shown = (row.rstrip("\r").rpartition("\r")[2].rstrip() for row in rows)
        return tuple(row[:LONGEST_LINE] for row in shown if row)[-LINES_TOLD:]
