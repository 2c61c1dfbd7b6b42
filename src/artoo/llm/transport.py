"""The interface of a transport to a model server, and its reply with status and headers.

Two implementations: HTTP (`artoo.llm.http`) and the embedded model (`artoo.llm.embedded`). All higher layers,
such as wires, retries, structured output and budgets, use only this port.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from artoo.llm.completion import Completion

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

# Receives each event of a streamed answer. It must be fast. An exception that it raises ends the request.
OnEvent = Callable[[dict[str, Json]], None]


class TransportReply(NamedTuple):
    """One answer of a server: HTTP status, headers (by lower-case names), and content.

    `body` is the decoded JSON of an answer that was not streamed. If the answer was no JSON, `body` is None and
    `text` is its beginning. `events` are the JSON objects of a streamed answer, in order. `completion` is the
    answer that a wire parsed from them, if there is one.
    """

    status: int
    headers: Mapping[str, str]
    body: Json
    text: str = ""
    events: tuple[dict[str, Json], ...] = ()
    completion: Completion | None = None


class Transport(Protocol):
    """Carries requests to one server."""

    @property
    def name(self) -> str:
        """Return the destination of requests for messages to a user: a URL, or the model file."""
        ...

    async def post(
        self,
        body: Mapping[str, object],
        *,
        timeout: float,
        path: str = "/chat/completions",
        on_event: OnEvent | None = None,
    ) -> TransportReply:
        """Send `body` to `path` below the base URL. A server may stream even if it was not asked to.

        Raises ModelUnreachable if no complete answer came within `timeout` seconds.
        """
        ...

    async def models(self, *, timeout: float) -> TransportReply:
        """Request `/models`: the served models and the server's type (`owned_by`). Raises ModelUnreachable."""
        ...

    async def close(self) -> None:
        """Close the transport: free connections or the loaded model. Idempotent."""
        ...
