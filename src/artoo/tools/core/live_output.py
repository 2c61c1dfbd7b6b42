"""Shows what a command prints while it runs: bounded, a few times a second, without secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from artoo.ports.printing import Heard, OnOutput, Printed, unheard
from artoo.tools.core.truncate import without_terminal_codes

LINES_TOLD = 8
LONGEST_LINE = 400
"""Characters of a line that are told; a terminal shows fewer."""
EVERY_SECONDS = 0.2
_WINDOW_BYTES = 16 * 1024
"""The bytes of the output that are kept. A secret of several lines is found as long as its beginning is in here."""


@dataclass(frozen=True, slots=True)
class Printing:
    """Tells `told` of the commands of a task. `redacted` takes secrets out of a text."""

    task_id: str
    told: OnOutput
    redacted: Callable[[str], str]

    @contextmanager
    def of(self, act: str) -> Generator[Heard]:
        """Provide the listener of one command. Nothing is told after the block."""
        tail = _Tail(lambda lines: self.told(Printed(self.task_id, act, lines)), self.redacted)
        try:
            yield tail.add
        finally:
            tail.close()


@contextmanager
def printing_of(printing: Printing | None, act: str) -> Generator[Heard]:
    """Listen as `Printing.of` does, if there is a listener."""
    if printing is None:
        yield unheard
        return
    with printing.of(act) as heard:
        yield heard


class _Tail:
    """The end of an output. A piece that comes soon after the last report waits for the next one."""

    def __init__(self, tell: Callable[[tuple[str, ...]], None], redacted: Callable[[str], str]) -> None:
        self._tell = tell
        self._redacted = redacted
        self._window = bytearray()
        self._cut = False
        self._closed = False
        self._next: asyncio.TimerHandle | None = None

    def add(self, written: bytes) -> None:
        """Keep the end of the output; the first piece is told after a moment, for what comes with it."""
        if self._closed:
            # The command goes on after the call, which does not listen any more.
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
        """Return the last lines as a terminal would show them: text that a carriage return overwrote is gone."""
        whole = self._redacted(bytes(self._window).decode("utf-8", "replace"))
        rows = without_terminal_codes(whole).split("\n")
        # The beginning of the first row is not known, so it may be a part of a secret.
        if self._cut:
            rows[:1] = [] if len(rows) > 1 else [rows[0][-LONGEST_LINE:]]
        shown = (row.rstrip("\r").rpartition("\r")[2].rstrip() for row in rows)
        return tuple(row[:LONGEST_LINE] for row in shown if row)[-LINES_TOLD:]
