"""The interface of a transport to a model server, and its reply with status and headers.

There are two implementations, HTTP (`artoo.llm.http`) and the embedded model (`artoo.llm.embedded`). All layers
above it (wires, retries, structured output and budgets) use only this interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from artoo.llm.completion import Completion

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

# Receives each event of a streamed answer. It must be fast, because it is called while the answer is read. If it
# raises an exception, the request ends.
OnEvent = Callable[[dict[str, Json]], None]


class TransportReply(NamedTuple):
    """One answer of a server, with its HTTP status, headers (under lower-case names), and content.

    `body` is the decoded JSON of an answer that was not streamed. If such an answer is no JSON, `body` is None and
    `text` is its beginning. `events` are the JSON objects of a streamed answer, in order. `completion` is the
    answer that a wire has parsed from them, if there is one.
    """

    status: int
    headers: Mapping[str, str]
    body: Json
    text: str = ""
    events: tuple[dict[str, Json], ...] = ()
    completion: Completion | None = None


class Transport(Protocol):
    """Sends requests to one server."""

    @property
    def name(self) -> str:
        """Return the destination of requests for messages to a user. It is a URL or the file of the model."""
        ...

    async def post(
        self,
        body: Mapping[str, object],
        *,
        timeout: float,
        path: str = "/chat/completions",
        on_event: OnEvent | None = None,
    ) -> TransportReply:
        """Send `body` to `path` below the base URL. A server may stream its answer even if it was not asked to.

        Raises ModelUnreachable if no complete answer came within `timeout` seconds.
        """
        ...

    async def models(self, *, timeout: float) -> TransportReply:
        """Request `/models`, which returns the models that the server offers and its type (`owned_by`). Raises
        ModelUnreachable."""
        ...

    async def close(self) -> None:
        """Close the transport. Connections, or the loaded model, are freed. Idempotent."""
        ...
