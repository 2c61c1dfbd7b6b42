"""Standard input and output as the wire of a protocol: nothing else in the process can read or write them.

Prints and child processes get the null device and standard error; the protocol alone has the real ones.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO

from artoo.contracts.errors import ConfigurationError

LONGEST_LINE = 4 << 20
"""Bytes of one message."""

TOO_LONG = b""
"""What `Wire.line` gives for a line over the limit: it was read and thrown away."""

_WANTED = "standard input and output must be pipes or a terminal"


@dataclass(slots=True)
class Wire:
    """Lines in both directions."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def line(self) -> bytes | None:
        """The next line without its end; None at the end of input, `TOO_LONG` for one over `LONGEST_LINE` bytes.

        Empty lines are left out.
        """
        while True:
            try:
                line = await self.reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                return error.partial.strip() or None
            except asyncio.LimitOverrunError as error:
                await self._skip(error.consumed)
                return TOO_LONG
            if line.strip():
                return line.strip()

    async def _skip(self, consumed: int) -> None:
        """Throws away the rest of a line, in pieces."""
        while True:
            await self.reader.readexactly(consumed)
            try:
                await self.reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                consumed = error.consumed
                continue
            except asyncio.IncompleteReadError:
                pass
            return

    async def send(self, line: bytes) -> None:
        """Writes one line. Raises ConnectionError when nobody reads any more."""
        self.writer.write(line + b"\n")
        await self.writer.drain()


@asynccontextmanager
async def standard_wire() -> AsyncGenerator[Wire]:
    """Takes standard input and output for the length of the block, and gives them back.

    Raises ConfigurationError when they are files: a protocol needs somebody at the other end.
    """
    for descriptor in (0, 1):  # asyncio takes a device, and finds out later, in a callback of its own
        _require_somebody(descriptor)
    wire_in, wire_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    try:
        async with _wire(wire_in, wire_out) as wire:
            yield wire
    finally:
        for descriptor in (wire_in, wire_out):
            os.set_blocking(descriptor, True)  # it is the same pipe for whoever has it besides
        os.dup2(wire_in, 0)
        os.dup2(wire_out, 1)
        os.close(wire_in)
        os.close(wire_out)


def _require_somebody(descriptor: int) -> None:
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)):
        raise ConfigurationError(f"{_WANTED}; one of them is a file or a device")


@asynccontextmanager
async def _wire(wire_in: int, wire_out: int) -> AsyncGenerator[Wire]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    ends = _file(wire_in, "rb"), _file(wire_out, "wb")
    source: asyncio.ReadTransport | None = None
    try:
        source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), ends[0])
        sink, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, ends[1])
    except (ValueError, PermissionError) as error:
        for end in (source, *ends):
            if end is not None:
                end.close()
        raise ConfigurationError(f"{_WANTED}: {error}") from error
    writer = asyncio.StreamWriter(sink, protocol, None, loop)
    try:
        yield Wire(reader, writer)
    finally:
        source.close()
        writer.close()


def _file(descriptor: int, mode: str) -> IO[bytes]:
    return os.fdopen(os.dup(descriptor), mode, buffering=0)
