"""Cards that clients may keep: how long, and whether the one they have is still the one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime

from a2a.types import AgentCard
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_AGE_SECONDS = 300


class CacheableCards:
    """Answers for `cards` (by path) say how long they hold, with a tag; who has that tag is told so, in short.

    `since` (aware UTC): a card is as old as the process that serves it.
    """

    def __init__(self, inner: ASGIApp, cards: Mapping[str, AgentCard], since: datetime) -> None:
        self._inner = inner
        self._headers = {path: _headers_of(card, since) for path, card in cards.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        known = self._headers.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "GET" else None
        if known is None:
            await self._inner(scope, receive, send)
            return
        if known["ETag"] in _tags(Headers(scope=scope).get("if-none-match", "")):
            await Response(status_code=304, headers=known)(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                MutableHeaders(scope=message).update(known)
            await send(message)

        await self._inner(scope, receive, sent)


def _headers_of(card: AgentCard, since: datetime) -> dict[str, str]:
    digest = hashlib.sha256(card.SerializeToString(deterministic=True)).hexdigest()[:32]
    return {
        "Cache-Control": f"public, max-age={MAX_AGE_SECONDS}",
        "ETag": f'"{digest}"',
        "Last-Modified": format_datetime(since, usegmt=True),
    }


def _tags(given: str) -> list[str]:
    return [tag.strip().removeprefix("W/") for tag in given.split(",")]
