"""How one chat-completions request reaches a model server, whatever the server is.

Two implementations: HTTP (`artoo.llm.http`) and the embedded model (`artoo.llm.embedded`). Everything above,
such as retries, structured output and budgets, sees only this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class TransportReply(NamedTuple):
    """One answer of a server: HTTP status, headers (found by lower-case names), and the decoded body (None if it
    was no JSON)."""

    status: int
    headers: Mapping[str, str]
    body: Json
    text: str = ""


class Transport(Protocol):
    """Carries requests in the OpenAI-compatible wire format to one server."""

    @property
    def name(self) -> str:
        """Where requests go, for messages to a person: a URL, or the model file."""
        ...

    async def post(self, body: Mapping[str, object], *, timeout: float) -> TransportReply:
        """POST /chat/completions. Raises ModelUnreachable when no complete answer came within `timeout` seconds."""
        ...

    async def models(self, *, timeout: float) -> TransportReply:
        """GET /models: what the server serves, and (owned_by) which server it is. Raises ModelUnreachable."""
        ...

    async def close(self) -> None:
        """Frees connections or the loaded model. Idempotent."""
        ...
