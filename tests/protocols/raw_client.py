"""A client of MCP or ACP that writes whatever it likes, to a server that is a real process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

from hosting import Place

INITIALIZE: dict[str, object] = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}


def where(place: Place) -> dict[str, object]:
    """What an editor asks for a session with."""
    return {"cwd": str(place.project), "mcpServers": []}


class Raw:
    """A client that writes whatever it likes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process, self._in, self._out = process, process.stdin, process.stdout

    async def write(self, line: bytes) -> None:
        self._in.write(line + b"\n")
        await self._in.drain()

    async def say(self, message: object) -> None:
        await self.write(json.dumps(message).encode())

    async def hear(self) -> dict[str, object]:
        return json.loads(await self._out.readline())

    async def error_to(self, line: bytes) -> tuple[object, int]:
        """The id and the code of the error that a line brings."""
        await self.write(line)
        answer = await self.hear()
        error = cast("dict[str, object]", answer["error"])
        assert error["message"]
        return answer["id"], cast(int, error["code"])


@asynccontextmanager
async def raw_client(place: Place, *serves: str) -> AsyncGenerator[Raw]:
    """A client of `artoo mcp` in the project, or of another command."""
    process = await asyncio.create_subprocess_exec(
        *place.command(*(serves or ("mcp", "--project", str(place.project)))),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=place.environ,
        limit=1 << 24,
    )
    assert process.stdin is not None
    try:
        yield Raw(process)
    finally:
        process.stdin.close()
        assert await process.wait() == 0
