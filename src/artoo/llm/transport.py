"""The port through which one request reaches a model server, whatever the server is.

Two implementations: HTTP (`artoo.llm.http`) and the embedded model (`artoo.llm.embedded`). Everything above,
such as wires, retries, structured output and budgets, sees only this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from artoo.llm.completion import Completion

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

# Hears each event of a streamed answer as it comes. Quick. What it raises ends the request, for its caller.
OnEvent = Callable[[dict[str, Json]], None]


class TransportReply(NamedTuple):
    """One answer of a server: HTTP status, headers (found by lower-case names), and what came.

    `body` is the decoded JSON of an answer that came whole; None if it was no JSON, and then `text` is the
    beginning of what came instead. `events` are the JSON objects of an answer that came as a stream, in order.
    `completion` is what a wire read in it, if it is an answer.
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
        """Return where requests go, for messages to a user: a URL, or the model file."""
        ...

    async def post(
        self,
        body: Mapping[str, object],
        *,
        timeout: float,
        path: str = "/chat/completions",
        on_event: OnEvent | None = None,
    ) -> TransportReply:
        """Send `body` to `path` below the base URL. A server may stream, whether or not it was asked to.

        Raises ModelUnreachable when no complete answer came within `timeout` seconds.
        """
        ...

    async def models(self, *, timeout: float) -> TransportReply:
        """Ask for `/models`: what the server serves, and (owned_by) which server it is. Raises ModelUnreachable."""
        ...

    async def close(self) -> None:
        """Close the transport: free connections or the loaded model. Idempotent."""
        ...
