"""`artoo mcp`: one runtime, one intake, one server, until the client leaves or the process is asked to end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from artoo.protocols.ending import until_asked_to_end
from artoo.protocols.handed import Fetching
from artoo.protocols.http import own_token
from artoo.protocols.intake import open_intake
from artoo.protocols.mcp.http import TOKEN_FILE, serve_http
from artoo.protocols.mcp.server import made_server
from artoo.protocols.mcp.stdio import serve_stdio
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.config.model import Config


async def serve(config: Config, project: Path, port: int | None, say: Callable[[str], None]) -> None:
    """Serves on standard input and output, or (`port`, 0 for any) by HTTP on loopback.

    Raises ConfigurationError.
    """
    fetching = Fetching()
    async with Artoo(config, on_fetch=fetching) as artoo, open_intake(artoo, config, fetching) as intake:
        server = made_server(intake, project)
        if port is None:
            await until_asked_to_end(serve_stdio(server))
            return
        token = own_token(config.home, TOKEN_FILE)

        def ready(bound: int) -> None:
            say(f"MCP at http://127.0.0.1:{bound}/mcp; the token is in {config.home / TOKEN_FILE}; Ctrl-C stops")

        await until_asked_to_end(serve_http(server, token, port, ready))
