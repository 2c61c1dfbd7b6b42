"""The application: a card, JSON-RPC and REST for the team and each exposed agent; behind tokens, but the cards."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from a2a.auth.user import User
from a2a.server.context import ServerCallContext
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.types import AgentCard
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from pydantic_core import from_json
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from artoo.protocols.a2a.card import KEYS_PATH, REST, RPC, Signer
from artoo.protocols.a2a.handler import GONE, BoardAgent
from artoo.protocols.http import CALLER, BoundedBody, OwnNames, TokenRequired, given
from artoo.protocols.json_lines import PARSE_ERROR

_JSON = ("application/json", "application/a2a+json")
_CONTENT_TYPE_NOT_SUPPORTED = -32_005
"""The protocol's code."""
_BODILESS = (":cancel", ":subscribe")
LARGEST_BODY = 1 << 20
"""Bytes of a request: texts are short here."""


class Holder(User):
    """Whoever has a token, by the name that the operator gave."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        """Whether there was a token."""
        return bool(self._name)

    @property
    def user_name(self) -> str:
        """The name."""
        return self._name


class ReadableJson:
    """Answers bodies that are no JSON (or say so), not UTF-8, or nested without end; the SDK would take some for
    good, and call others defects here.

    What REST asks with the address alone needs no body.
    """

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI. The body comes whole, from `BoundedBody`."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._inner(scope, receive, send)
            return
        message = await receive()
        body: bytes = message.get("body", b"")
        kind = Headers(scope=scope).get("content-type", _JSON[0]).partition(";")[0].strip().lower()
        if body and kind not in _JSON:
            await _not_json(str(scope["path"]), kind)(scope, receive, send)
            return
        try:
            if body or not scope["path"].endswith(_BODILESS):
                from_json(body)
        except ValueError as error:
            await _unreadable(str(scope["path"]), str(error))(scope, receive, send)
            return
        await self._inner(scope, given(message, receive), send)


def _unreadable(path: str, why: str) -> JSONResponse:
    return _refused(path, f"this is no JSON: {why}", PARSE_ERROR, 400)


def _not_json(path: str, kind: str) -> JSONResponse:
    text = f"the Content-Type is {kind[:100]!r}, and must be {' or '.join(_JSON)}"
    return _refused(path, text, _CONTENT_TYPE_NOT_SUPPORTED, 415)


def _refused(path: str, text: str, code: int, status: int) -> JSONResponse:
    """As the binding of this path says it."""
    if path.rstrip("/").endswith(RPC):
        error: dict[str, object] = {"code": code, "message": text}
        return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error})
    told = {"code": status, "status": "INVALID_ARGUMENT", "message": text}
    return JSONResponse({"error": told}, status_code=status)


class _Contexts(DefaultServerCallContextBuilder):
    """Says who asks, and what returns when they are gone."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.user = Holder(str(request.scope.get(CALLER, "")))
        context.state[GONE] = partial(_gone, request)
        return context


async def _gone(request: Request) -> None:
    """Returns when the client has left. Its body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def place_of(agent: str) -> str:
    """The path below which an agent is asked; empty for the team."""
    return f"/agents/{agent}" if agent else ""


def application(
    agents: Mapping[str, tuple[AgentCard, BoardAgent]], signer: Signer, tokens: Mapping[str, str], names: list[str]
) -> ASGIApp:
    """`agents` by name, the team under the empty one; `tokens` by foreign agent; `names` are this server's own."""
    routes: list[BaseRoute] = []
    cards: dict[str, AgentCard] = {}

    async def keys(request: Request) -> Response:
        return JSONResponse(signer.keys)

    for agent, (card, handler) in agents.items():
        place, contexts = place_of(agent), _Contexts()
        cards[place + AGENT_CARD_WELL_KNOWN_PATH] = card
        routes += create_agent_card_routes(card, card_url=place + AGENT_CARD_WELL_KNOWN_PATH)
        for address in (place + RPC, f"{place}{RPC}/"):  # clients join addresses as they like
            routes += create_jsonrpc_routes(handler, address, contexts, enable_v0_3_compat=True)
        rest = create_rest_routes(handler, contexts, path_prefix=place + REST)
        routes += [route for route in rest if not isinstance(route, Mount)]  # tenants, which there are none of
    routes.append(Route(KEYS_PATH, keys))
    app = BoundedBody(ReadableJson(Starlette(routes=routes)), LARGEST_BODY)
    return OwnNames(TokenRequired(app, tokens, [KEYS_PATH, *cards]), names)
