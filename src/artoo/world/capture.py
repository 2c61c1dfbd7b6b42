"""Keeps the head and the tail of an output stream, and counts all of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass

from artoo.ports.printing import Heard
from artoo.ports.sandbox import Captured

_CHUNK = 64 * 1024


@dataclass(slots=True)
class Pipe:
    """A program's stream: our end, and the program's (a descriptor) until it is handed over."""

    reader: asyncio.StreamReader
    write: int
    _transport: asyncio.ReadTransport

    @classmethod
    async def opened(cls) -> Pipe:
        """A new one. Raises OSError."""
        reader = asyncio.StreamReader()
        read, write = os.pipe()
        try:
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb", 0)
            )
        except BaseException:
            os.close(write)
            raise
        return cls(reader, write, transport)

    def hand_over(self) -> None:
        """The program has its end: when it and all that it left have closed it, ours is at its end."""
        os.close(self.write)
        self.write = -1

    def close(self) -> None:
        """Both ends, as far as they are ours."""
        if self.write >= 0:
            self.hand_over()
        self._transport.close()


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
