"""Route a question to the endpoint of its tier (brain or tool)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from artoo.llm.settings import Endpoint, ModelSettings
from artoo.ports.model import Answer, Conversation, Known, OnText, Question, Spoken, Tier

if TYPE_CHECKING:
    from artoo.llm.budget import Budget
    from artoo.llm.client import EndpointModel

T = TypeVar("T", bound=BaseModel)


class TieredModel:
    """All models of a process, shared by its tasks. The client of an endpoint is created at its first question.

    `connect` creates the client of an endpoint. If the endpoints of both tiers are equal, they use the same client.
    """

    def __init__(self, settings: ModelSettings, connect: Callable[[Endpoint], EndpointModel]) -> None:
        self._settings = settings
        self._connect = connect
        self._made: dict[Endpoint, EndpointModel] = {}

    async def ask(self, question: Question[T], *, meter: Budget | None = None) -> Answer[T]:
        """Ask a question, as `artoo.ports.model.Model` describes. `meter` has the same meaning as in
        EndpointModel."""
        return await self._model(question.tier).ask(question, meter=meter)

    async def converse(
        self, conversation: Conversation, on_text: OnText | None = None, *, meter: Budget | None = None
    ) -> Spoken:
        """Take a turn, as `artoo.ports.model.Converses` describes. `meter` has the same meaning as in
        EndpointModel."""
        return await self._model(conversation.tier).converse(conversation, on_text, meter=meter)

    async def known(self, tier: Tier) -> Known:
        """Return what is known about the model of a tier, as MeteredModel describes."""
        return await self._model(tier).known()

    async def close(self) -> None:
        """Close all endpoints that were used. Idempotent."""
        made, self._made = self._made, {}
        for model in made.values():
            await model.close()

    def _model(self, tier: Tier) -> EndpointModel:
        endpoint = self._settings.of(tier)
        if endpoint not in self._made:
            self._made[endpoint] = self._connect(endpoint)
        return self._made[endpoint]
