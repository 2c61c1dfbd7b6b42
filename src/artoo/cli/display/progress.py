"""How far a long reading is, on standard error of a terminal, and nowhere else."""

from __future__ import annotations

import sys
import time

from artoo.cli.display.side_channel import MEGABYTE

_FIRST_SECONDS = 1.0
_EVERY_SECONDS = 0.2


class ReadingProgress:
    """Call it with the bytes that were read; leaving it clears its line. `total`: bytes that there are."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._shown = False
        self._next = time.monotonic() + _FIRST_SECONDS
        self._silent = not sys.stderr.isatty()

    def __call__(self, count: int) -> None:
        self._done += count
        if self._silent or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_SECONDS
        self._shown = True
        share = min(100, 100 * self._done // max(1, self._total))
        done, total = self._done // MEGABYTE, self._total // MEGABYTE
        sys.stderr.write(f"\r\x1b[K{self._what}: {share} % ({done} of {total} MB)")
        sys.stderr.flush()

    def __enter__(self) -> ReadingProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
