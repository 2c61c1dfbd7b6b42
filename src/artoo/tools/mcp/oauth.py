"""OAuth login at MCP servers, with the token file and a login timeout.

It uses the SDK's own client. Only the owner of the token file can read it.

artoo mcp login NAME ──► browser ──► http://127.0.0.1:PORT/callback ──► mcp/tokens/NAME.json a task ──► the token of
that file, which the SDK refreshes when it has expired
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Never
from urllib.parse import parse_qs, urlsplit

from artoo.contracts.errors import ToolError
from artoo.disk.whole import write_whole
from artoo.tools.mcp.servers import McpServer

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

LOGIN_SECONDS = 300.0
"""Number of seconds that a user has to log in with the browser."""
_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nDone. You can close this page.\n"
_LARGEST = 64 * 1024


def token_file(server: McpServer) -> Path | None:
    """Return the path of the file with a server's tokens. Return None for a project's server, which gets no
    tokens."""
    return None if server.shelter is None else server.shelter.directory / "tokens" / f"{server.name}.json"


@dataclass(frozen=True, slots=True)
class TokenFile:
    """Implements the SDK's TokenStorage in one file, which also contains the address of the server."""

    path: Path
    url: str

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken

        found = self._read().get("tokens")
        return None if found is None else OAuthToken.model_validate(found)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._write("tokens", tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        found = self._read().get("client")
        return None if found is None else OAuthClientInformationFull.model_validate(found)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._write("client", client_info.model_dump(mode="json", exclude_none=True))

    def _read(self) -> dict[str, object]:
        """Return the stored values. Return nothing if they belong to another address, because that server must not
        get the token."""
        try:
            found: dict[str, object] = json.loads(self.path.read_bytes()[:_LARGEST])
        except (OSError, ValueError):
            return {}
        return found if found.get("url") == self.url else {}

    def _write(self, key: str, value: object) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self.path, json.dumps({**self._read(), "url": self.url, key: value}).encode())


def provider(
    server: McpServer,
    redirect: str = "http://127.0.0.1/callback",
    show: Callable[[str], Awaitable[None]] | None = None,
    wait: Callable[[], Awaitable[AuthorizationCodeResult]] | None = None,
) -> OAuthClientProvider | None:
    """Return the authentication for requests to a server. Return None if the user has not logged in and cannot log
    in now.

    `show` receives the address to open in the browser. `wait` returns the browser's answer.
    """
    path = token_file(server)
    if path is None or server.url is None or (show is None and not path.exists()):
        return None
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    async def refuse(*_: object) -> Never:
        raise ToolError(f"it wants a new login: artoo mcp login {server.name}")

    known = {"redirect_uris": [redirect], "client_name": "artoo", "token_endpoint_auth_method": "none"}
    metadata = OAuthClientMetadata.model_validate(known)
    storage = TokenFile(path, server.url)
    return OAuthClientProvider(server.url, metadata, storage, show or refuse, wait or refuse)


@asynccontextmanager
async def logging_in(
    server: McpServer, show: Callable[[str], Awaitable[None]]
) -> AsyncGenerator[OAuthClientProvider | None]:
    """Yield the authentication for a login at a server. `show` gets the address to open, and a socket on the
    loopback interface receives the answer."""
    from mcp.shared.auth import AuthorizationCodeResult

    answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = (await asyncio.wait_for(reader.readline(), 10.0)).decode("latin-1").split(" ")
            query = parse_qs(urlsplit(line[1]).query) if len(line) > 1 else {}
            given = {key: values[0] for key, values in query.items() if key in ("code", "state", "iss")}
            if "code" in given and not answer.done():
                answer.set_result(AuthorizationCodeResult.model_validate(given))
            elif "error" in query and not answer.done():
                answer.set_exception(ToolError(f"the login was refused: {query['error'][0]}"))
            writer.write(_PAGE)
            await writer.drain()
        except (OSError, TimeoutError, ValueError):
            return  # a connection without a valid request, because the browser opens additional connections
        finally:
            writer.close()

    async def wait() -> AuthorizationCodeResult:
        return await asyncio.wait_for(answer, LOGIN_SECONDS)

    listener = await asyncio.start_server(hear, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        yield provider(server, f"http://127.0.0.1:{port}/callback", show, wait)
