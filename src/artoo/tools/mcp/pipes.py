"""Run an MCP server as a child process over standard streams, with the longest line.

When the streams are closed, all processes of the server are ended.

The SDK's own transport reads lines of any length, so a server could exhaust the memory.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from artoo.contracts.errors import ToolError
from artoo.contracts.text import well_formed_json
from artoo.sandbox.reading.programs import search_path
from artoo.tools.mcp.servers import McpServer

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCMessage

LONGEST_LINE = 8 << 20
"""Maximum number of bytes of one message. A server that sends a longer message is ended."""

_GRACE_SECONDS = 1.0


@asynccontextmanager
async def piped(
    server: McpServer, ended: Callable[[str], None]
) -> AsyncGenerator[
    tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
]:
    """Start the server and yield its message streams. When the server closes its output, call `ended` with the
    reason.

    Raises ToolError if it cannot be started.
    """
    import anyio
    from mcp.client.stdio import get_default_environment
    from mcp.shared.message import SessionMessage

    process = await _started(server, get_default_environment())
    to_us, incoming = anyio.create_memory_object_stream["SessionMessage | Exception"](16)
    outgoing, from_us = anyio.create_memory_object_stream[SessionMessage](16)
    async with asyncio.TaskGroup() as group:
        running = [
            group.create_task(_reading(process, to_us, ended)),
            group.create_task(_writing(process, from_us)),
        ]
        try:
            yield incoming, outgoing
        finally:
            for task in running:
                task.cancel()
            try:
                await asyncio.wait(running)
                await _asked_to_end(process)
            finally:
                # The task that closes the streams may be cancelled while it waits, so the processes are ended in
                # any case.
                _end_all(process)
                for stream in (to_us, incoming, outgoing, from_us):
                    stream.close()
                await _drained(process)


async def _started(server: McpServer, common: dict[str, str]) -> asyncio.subprocess.Process:
    given, shelter, command = dict(server.env), server.shelter, server.command
    try:
        if shelter is not None:
            directory = server.cwd or shelter.prepare()
            common = common | {"PATH": search_path(shelter.apart)}
            if "PATH" not in given:
                command = (_found(server), *command[1:])
        else:
            directory = server.cwd
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd=directory,
            env=common | given,
            start_new_session=True,
            limit=LONGEST_LINE,
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"it cannot be started: {error}") from error


def _found(server: McpServer) -> str:
    """Return the server's program, as configured or found on the PATH. Raises ToolError if it is not found."""
    name = server.command[0]
    program = name if "/" in name else server.program()
    if program is None:
        where = "on your PATH outside of the project and the workspace"
        remedy = "install it, or name it by its whole path"
        raise ToolError(f"it cannot be started: {name} is not {where}; {remedy}")
    return program


async def _reading(
    process: asyncio.subprocess.Process,
    to_us: MemoryObjectSendStream[SessionMessage | Exception],
    ended: Callable[[str], None],
) -> None:
    import anyio
    from mcp.shared.message import SessionMessage

    assert process.stdout is not None
    why = "it ended"
    try:
        async with to_us:
            while line := await process.stdout.readline():
                try:
                    message = read_message(line)
                except ValueError:
                    # Some servers write log messages to standard output, which are skipped.
                    continue
                await to_us.send(SessionMessage(message))
    except ValueError:
        # `readline` raises ValueError for a line that is longer than the limit.
        why = f"it sent more than {LONGEST_LINE} bytes in one message"
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return
    ended(why)


def read_message(line: bytes) -> JSONRPCMessage:
    """Parse one message. Its strings may contain lone surrogates. Raises ValueError if it is not a message."""
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return jsonrpc_message_adapter.validate_python(well_formed_json(line), by_name=False)


async def _writing(process: asyncio.subprocess.Process, from_us: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None
    # if the server has ended, the task that reads reports it
    with suppress(ConnectionError):
        async for sent in from_us:
            process.stdin.write(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await process.stdin.drain()


async def _asked_to_end(process: asyncio.subprocess.Process) -> None:
    """Close the server's input, which asks it to exit, and wait a moment."""
    assert process.stdin is not None
    process.stdin.close()
    await _drained(process)


def _end_all(process: asyncio.subprocess.Process) -> None:
    """Kill the server's whole process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _drained(process: asyncio.subprocess.Process) -> None:
    """Wait a moment for the process to end."""
    # `asyncio.timeout` is not used here. Before Python 3.11.3, a timeout that expires inside another expired
    # timeout raises CancelledError, so that the code after it does not run.
    ending = asyncio.create_task(_ended(process))
    try:
        await asyncio.wait({ending}, timeout=_GRACE_SECONDS)
    finally:
        ending.cancel()


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Read and discard the remaining output, because unread output would delay the end of the process."""
    assert process.stdout is not None
    while await process.stdout.read(1 << 16):
        pass
    await process.wait()
