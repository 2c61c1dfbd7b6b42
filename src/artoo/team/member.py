"""An agent as the runtime knows it, and what that means for the tasks that are done for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from artoo.agents.identity.folders import AgentFolder
from artoo.agents.identity.identity import Identity, segments
from artoo.agents.identity.registry import Registry
from artoo.loops.asking import Standing
from artoo.ports.model import Tier
from artoo.prompts.segments import Segment
from artoo.runtime.app.run_options import Budgets


@dataclass(frozen=True, slots=True)
class Member:
    """One agent of the team with its accepted identity. `registry` checks before each prompt that it still is."""

    folder: AgentFolder
    identity: Identity
    registry: Registry

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.identity.name

    def standing(self, more: Mapping[Segment, str] | None = None) -> Standing:
        """Its segments of every prompt, with those that belong to this piece of work."""

        async def check() -> None:
            await self.registry.check(self.folder)

        given = {segment: text for segment, text in (more or {}).items() if text}
        own = {segment: text for segment, text in segments(self.identity).items() if text}
        return Standing({**own, **given}, check)

    @property
    def tier(self) -> Tier | None:
        """The models that it may ask; None: every role its own."""
        return None if self.identity.tier == "default" else Tier(self.identity.tier)

    @property
    def must_not(self) -> frozenset[str]:
        """Identities of tools that it has no right to."""
        return frozenset(self.identity.limits.must_not)

    @property
    def budgets(self) -> Budgets:
        """What one piece of work may cost."""
        limits = self.identity.limits
        return Budgets(seconds=limits.seconds, calls=limits.calls, tokens=limits.tokens, money=limits.money)
