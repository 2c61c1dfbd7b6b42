"""Keeps the head and the tail of an output stream, and counts all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from artoo.ports.printing import Heard
from artoo.ports.sandbox import Captured

_CHUNK = 64 * 1024


class Capture:
    """Bounded memory of one stream: `kept` bytes, half from the start and half from the end."""

    def __init__(self, kept: int) -> None:
        self._half = max(1, kept // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room < len(data) else b""
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def result(self) -> Captured:
        return Captured(bytes(self._head), bytes(self._tail[-self._half :]), self._total)


class OutputBudget:
    """Counts the bytes of all streams of a run and says, once, when there are too many."""

    def __init__(self, limit: int, exceeded: Callable[[], None]) -> None:
        self._left = limit
        self._exceeded = exceeded

    def spend(self, count: int) -> None:
        before, self._left = self._left, self._left - count
        if before >= 0 > self._left:
            self._exceeded()


async def read_all(stream: asyncio.StreamReader, capture: Capture, budget: OutputBudget, heard: Heard) -> None:
    """Reads to the end of the stream, whatever its length. `heard` is told of each piece."""
    while data := await stream.read(_CHUNK):
        capture.add(data)
        budget.spend(len(data))
        heard(data)
