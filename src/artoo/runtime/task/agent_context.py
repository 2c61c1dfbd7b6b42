"""The settings that a standing agent adds to its task, such as identity, limits and tier."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pydantic import BaseModel

from artoo.llm.budget import Budget, MeteredModel
from artoo.loops.asking import StandingSegments
from artoo.ports.model import Answer, Conversation, Known, OnText, Question, Spoken, Tier
from artoo.ports.settling import Settling
from artoo.ports.workspace import Workspace
from artoo.runtime.task.role_context import Hands
from artoo.tools.core.registry import Registry
from artoo.tools.core.tool import Tool

T = TypeVar("T", bound=BaseModel)


async def _nobody_told(run: str) -> None:
    """Ignore the id of a run, for an agent that needs no notification."""


@dataclass(frozen=True, slots=True)
class Behalf:
    """The settings that an agent adds to its task.

    `standing`: the agent's segments, which are part of every prompt and are checked before each. `must_not`: tools
    that the task does not get. `tools`: tools that the task gets in addition. `workspace`: the workspace of the
    agent. If it is None, the task gets one of its own. `settling` applies that workspace at the end, or keeps it.
    If it is None, the workspace is settled as for any task. `kept`: whether the workspace still contains the work
    of an interrupted run. `tier`: the only tier of models that the agent may ask. If it is None, each role asks its
    own tier. `began` is called with the task's id before anything else happens.
    """

    standing: StandingSegments = field(default_factory=StandingSegments)
    must_not: frozenset[str] = frozenset()
    tools: tuple[Tool, ...] = ()
    workspace: Workspace | None = None
    settling: Settling | None = None
    kept: bool = False
    tier: Tier | None = None
    began: Callable[[str], Awaitable[None]] = _nobody_told

    def hands(self, hands: Hands) -> Hands:
        """Return the task's tools with the agent's own tools added and the forbidden ones removed."""
        if isinstance(hands.tools, Registry):
            hands.tools.add(self.tools, self.must_not)
        return hands

    def model(self, model: MeteredModel) -> MeteredModel:
        """Return the model that the agent may ask."""
        return model if self.tier is None else OneTier(model, self.tier)


class OneTier:
    """A model that sends the questions of every role to the same tier."""

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
