"""The agent of a team for whom a task is done: its identity, its limits, and where it works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pydantic import BaseModel

from artoo.llm.budget import Budget, MeteredModel
from artoo.loops.asking import Standing
from artoo.ports.model import Answer, Conversation, Known, OnText, Question, Spoken, Tier
from artoo.ports.settling import Settling
from artoo.ports.workspace import Workspace
from artoo.runtime.task.role_context import Hands
from artoo.tools.core.registry import Registry
from artoo.tools.core.tool import Tool

T = TypeVar("T", bound=BaseModel)


async def _nobody_told(run: str) -> None:
    """Tell no one which run it is."""


@dataclass(frozen=True, slots=True)
class Behalf:
    """An agent's part in a task's making.

    `standing`: its segments of every prompt, checked at each. `must_not`: tools that it is not given. `tools`:
    those that it has besides. `workspace`: where it works (None: in one of the task's own), `settling` what becomes
    of that at the end (None: as with any task), `kept` whether an interrupted run's work is still in it. `tier`:
    the models that it may ask (None: every role its own). `began` is told the task's id before anything else
    happens.
    """

    standing: Standing = field(default_factory=Standing)
    must_not: frozenset[str] = frozenset()
    tools: tuple[Tool, ...] = ()
    workspace: Workspace | None = None
    settling: Settling | None = None
    kept: bool = False
    tier: Tier | None = None
    began: Callable[[str], Awaitable[None]] = _nobody_told

    def hands(self, hands: Hands) -> Hands:
        """Return the task's hands with the agent's own tools, and without those that it has no right to."""
        if isinstance(hands.tools, Registry):
            hands.tools.add(self.tools, self.must_not)
        return hands

    def model(self, model: MeteredModel) -> MeteredModel:
        """Return the models that the agent may ask."""
        return model if self.tier is None else OneTier(model, self.tier)


class OneTier:
    """A model of which every role asks the same tier."""

    def __init__(self, model: MeteredModel, tier: Tier) -> None:
        self._model = model
        self._tier = tier

    async def ask(self, question: Question[T], *, meter: Budget | None = None) -> Answer[T]:
        return await self._model.ask(question._replace(tier=self._tier), meter=meter)

    async def converse(
        self, conversation: Conversation, on_text: OnText | None = None, *, meter: Budget | None = None
    ) -> Spoken:
        return await self._model.converse(replace(conversation, tier=self._tier), on_text, meter=meter)

    async def known(self, tier: Tier) -> Known:
        return await self._model.known(self._tier)
