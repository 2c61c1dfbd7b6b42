"""The URLs of the A2A server (cards, JSON-RPC, REST), its token check, and the body limit.

Every request needs a token, except requests for the cards and the public keys.
"""

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
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from artoo.protocols.a2a.card import KEYS_PATH, REST, RPC, Signer
from artoo.protocols.a2a.handler import GONE, BoardAgent
from artoo.protocols.http import CALLER, OwnNames, TokenRequired
from artoo.protocols.wire import INVALID_REQUEST, PARSE_ERROR

_JSON = ("application/json", "application/a2a+json")
_CONTENT_TYPE_NOT_SUPPORTED = -32_005
"""The error code that A2A defines."""
_BODILESS = (":cancel", ":subscribe")
LARGEST_BODY = 1 << 20
"""Maximum number of bytes of a request. It is small, because messages contain only text."""


class Holder(User):
    """The caller. Its name is the one that the operator gave to the token."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        """Check whether the request had a token."""
        return bool(self._name)

    @property
    def user_name(self) -> str:
        """Return the caller's name."""
        return self._name


class JsonBodies:
    """ASGI middleware that reads each body. It refuses a body that is too large, is not JSON, or is not declared as
    JSON.

    The SDK would accept some of these bodies, and answer others with an internal error. The body may be empty for
    REST requests whose address says everything (`_BODILESS`).
    """

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request. Implements ASGI."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._inner(scope, receive, send)
            return
        request, path, body = Request(scope, receive), str(scope["path"]), bytearray()
        try:
            async for piece in request.stream():
                body += piece
                if len(body) > LARGEST_BODY:
                    break
        except ClientDisconnect:
            return
        refused = self._refusal(path, bytes(body), request.headers.get("content-type", _JSON[0]))
        if refused is not None:
            await refused(scope, receive, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def again() -> Message:
            return whole.pop() if whole else await receive()

        await self._inner(scope, again, send)

    def _refusal(self, path: str, body: bytes, content_type: str) -> JSONResponse | None:
        kind = content_type.partition(";")[0].strip().lower()
        if len(body) > LARGEST_BODY:
            return _refused(path, f"the body is larger than {LARGEST_BODY:,} bytes", INVALID_REQUEST, 413)
        if body and kind not in _JSON:
            why = f"the Content-Type is {kind[:100]!r}, and must be {' or '.join(_JSON)}"
            return _refused(path, why, _CONTENT_TYPE_NOT_SUPPORTED, 415)
        try:
            if body or not path.endswith(_BODILESS):
                from_json(body)
        except ValueError as error:
            return _refused(path, f"the body is not JSON: {error}", PARSE_ERROR, 400)
        return None


def _refused(path: str, text: str, code: int, status: int) -> JSONResponse:
    """Return the error in the form of the binding (JSON-RPC or REST) that the path belongs to."""
    if path.rstrip("/").endswith(RPC):
        error: dict[str, object] = {"code": code, "message": text}
        # An error of JSON-RPC has status 200. If a body was too large to be read as JSON-RPC, the status is another
        # one.
        return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 413 if status == 413 else 200)
    told = {"code": status, "status": "INVALID_ARGUMENT", "message": text}
    return JSONResponse({"error": told}, status_code=status)


class _Contexts(DefaultServerCallContextBuilder):
    """Adds to each call the caller, and a function that waits until the caller has disconnected (`GONE`)."""

    def build(self, request: Request) -> ServerCallContext:
        context = super().build(request)
        context.user = Holder(str(request.scope.get(CALLER, "")))
        context.state[GONE] = partial(_gone, request)
        return context


async def _gone(request: Request) -> None:
    """Wait until the client has disconnected. The body of the request must have been read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def place_of(agent: str) -> str:
    """Return the path in the URLs of an agent. It is empty for the team."""
    return f"/agents/{agent}" if agent else ""


def application(
    agents: Mapping[str, tuple[AgentCard, BoardAgent]], signer: Signer, tokens: Mapping[str, str], names: list[str]
) -> ASGIApp:
    """Build the application for the team (which has the empty name in `agents`) and for each agent.

    `tokens` maps each foreign agent to its token. `names` are the host names under which this server accepts
    requests.
    """
    routes: list[BaseRoute] = []
    cards: dict[str, AgentCard] = {}

    async def keys(request: Request) -> Response:
        return JSONResponse(signer.keys)

    for agent, (card, handler) in agents.items():
        place, contexts = place_of(agent), _Contexts()
        cards[place + AGENT_CARD_WELL_KNOWN_PATH] = card
        routes += create_agent_card_routes(card, card_url=place + AGENT_CARD_WELL_KNOWN_PATH)
        # Some clients add a slash to the end of the address.
        for address in (place + RPC, f"{place}{RPC}/"):
            routes += create_jsonrpc_routes(handler, address, contexts, enable_v0_3_compat=True)
        rest = create_rest_routes(handler, contexts, path_prefix=place + REST)
        # Such mounted routes are for tenants, which artoo does not have.
        routes += [route for route in rest if not isinstance(route, Mount)]
    routes.append(Route(KEYS_PATH, keys))
    app = JsonBodies(Starlette(routes=routes))
    return OwnNames(TokenRequired(app, tokens, [KEYS_PATH, *cards]), names)
