"""Checks of Host, Origin and cookie (with its name) for every web request, and security headers of responses.

The Host check prevents DNS rebinding by pages of other sites. The Origin check and the SameSite=Strict cookie
prevent CSRF. The cookie prevents reading, and frame-ancestors prevents framing. The pages load nothing from other
servers, so the content security policy allows only this server.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from artoo.web.entry import Entry

COOKIE = "artoo_session"
ENTRANCE = "/enter"
"""The only address that needs no cookie, because it exchanges a token for the cookie."""

_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE = frozenset({"GET", "HEAD"})

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

NO_COOKIE = (
    "artoo: this page needs the address that `artoo web` prints. It is good once; for a new one type: artoo web\n"
)


def is_own_host(host: str) -> bool:
    """Check whether a Host header names this machine. Any port is accepted, because a tunnel may change it."""
    try:
        return urlsplit(f"//{host}").hostname in _HOSTS
    except ValueError:
        return False


def is_own_origin(origin: str, host: str) -> bool:
    """Check whether an Origin header has the same host and port as the Host header."""
    scheme, _, authority = origin.partition("://")
    return scheme in ("http", "https") and authority == host


class Guard:
    """ASGI middleware with the checks. It encloses the whole application, so that no route can bypass it."""

    def __init__(self, app: ASGIApp, entry: Entry) -> None:
        self._app = app
        self._entry = entry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            # No websockets are served.
            return

        async def armoured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refused = self._refusal(scope)
        await (self._app if refused is None else refused)(scope, receive, armoured)

    def _refusal(self, scope: Scope) -> Response | None:
        headers, method, path = Headers(scope=scope), str(scope["method"]), str(scope["path"])
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not is_own_host(hosts[0]):
            return PlainTextResponse("artoo: this is not the host that you asked for\n", 421)
        if method not in _SAFE and not is_own_origin(headers.get("origin", ""), hosts[0]):
            return PlainTextResponse("artoo: this was not asked by a page of artoo's own\n", 403)
        entering = path == ENTRANCE and method in _SAFE
        if not entering and not self._entry.knows(session_of(headers)):
            return PlainTextResponse(NO_COOKIE, 401)
        return None


def session_of(headers: Headers) -> str:
    """Return the session's secret from the cookies, or an empty text without a session cookie.

    Browsers send the cookies of all ports of a host, so cookies of other programs on this machine are ignored.
    """
    return cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
