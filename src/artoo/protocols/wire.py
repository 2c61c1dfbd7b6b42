"""JSON-RPC 2.0 over standard input and output, one message per line, with its limit.

The transports of the SDKs are not used. That of MCP reads in a thread that a signal cannot end. That of ACP closes
the connection at the first line that is not a JSON object. This transport answers such a line with an error. Other
code of the process cannot write to the pipes. Child processes get the null device as standard input, and what is
printed goes to standard error.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import IO, Any, cast

from artoo.contracts.errors import ConfigurationError

LONGEST_LINE = 64 << 20
"""Maximum number of bytes of one message. A longer message ends the connection."""
PARSE_ERROR, INVALID_REQUEST = -32_700, -32_600

_WANTED = "standard input and output must be pipes or a terminal"


@dataclass(slots=True)
class Wire:
    """Reads and writes JSON-RPC messages on two pipes. Implements the ACP library's `Transport`."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def receive(self) -> dict[str, Any] | None:
        """Return the next well-formed message. Return None at the end of input, or if the client no longer reads
        answers."""
        # The handler of the previous message begins before more is read, so that a cancellation finds the request
        # that it cancels.
        await asyncio.sleep(0)
        with suppress(ConnectionError, asyncio.LimitOverrunError):
            while line := await self._line():
                message, refusal = _parsed(line)
                if refusal is None:
                    return message
                # If errors were answered with errors, this would never end.
                if not _is_error(message):
                    await self._write({"jsonrpc": "2.0", "id": _id_of(message), "error": refusal})
        return None

    async def send(self, message: dict[str, Any]) -> None:
        """Write one message. If the pipe is closed, nothing is raised, because `receive` notices the end of
        input."""
        with suppress(ConnectionError):
            await self._write(message)

    async def close(self) -> None:
        """Do nothing, because `standard_wire` closes the pipes."""

    async def _line(self) -> bytes:
        """Return the next line that is not empty. Return empty bytes at the end of input."""
        while True:
            try:
                line = await self.reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                return error.partial.strip()
            if line.strip():
                return line.strip()

    async def _write(self, message: dict[str, Any]) -> None:
        self.writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        await self.writer.drain()


def _parsed(line: bytes) -> tuple[dict[str, Any], dict[str, object] | None]:
    """Return the message in a line. If the line is no valid message, return a JSON-RPC error too."""
    try:
        raw: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {}, {"code": PARSE_ERROR, "message": f"the line is not JSON: {error}"}
    message = cast("dict[str, Any]", raw) if isinstance(raw, dict) else {}
    why = _problem(message)
    return message, None if why is None else {"code": INVALID_REQUEST, "message": why}


def _problem(message: dict[str, Any]) -> str | None:
    """Return the reason why a value is not a JSON-RPC 2.0 message. Return None if it is one."""
    if message.get("jsonrpc") != "2.0":
        return "this is not a JSON-RPC 2.0 message"
    if "id" in message and _id_of(message) is None:
        return "the id must be a string or an integer"
    if "method" not in message:
        answers = "id" in message and ("result" in message) != ("error" in message)
        return None if answers else "this is neither a request nor a response"
    if not isinstance(message["method"], str) or not isinstance(message.get("params"), dict | None):
        return "the method must be a string, and its parameters an object"
    return None


def _id_of(message: dict[str, Any]) -> str | int | None:
    found = message.get("id")
    return found if isinstance(found, str) or type(found) is int else None


def _is_error(message: dict[str, Any]) -> bool:
    return "error" in message and "method" not in message


@asynccontextmanager
async def standard_wire() -> AsyncGenerator[Wire]:
    """Use standard input and output as the transport while the block runs. Restore both afterwards.

    Raises ConfigurationError if they are files or devices, because there must be a program at the other end.
    """
    # asyncio would accept a device here, and fail later in a callback of its own
    for descriptor in (0, 1):
        mode = os.fstat(descriptor).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)):
            raise ConfigurationError(f"{_WANTED}; one of them is a file or a device")
    wire_in, wire_out = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    try:
        async with _open(wire_in, wire_out) as wire:
            yield wire
    finally:
        for descriptor, standard in ((wire_in, 0), (wire_out, 1)):
            # Other processes may use the same pipe, and expect that it blocks.
            os.set_blocking(descriptor, True)
            os.dup2(descriptor, standard)
            os.close(descriptor)


@asynccontextmanager
async def _open(wire_in: int, wire_out: int) -> AsyncGenerator[Wire]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    source, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), _file(wire_in, "rb"))
    sink, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, _file(wire_out, "wb"))
    writer = asyncio.StreamWriter(sink, protocol, None, loop)
    try:
        yield Wire(reader, writer)
    finally:
        source.close()
        writer.close()


def _file(descriptor: int, mode: str) -> IO[bytes]:
    return os.fdopen(os.dup(descriptor), mode, buffering=0)
