"""Tools whose acts cannot be undone by dropping them ask first: the user's own functions, and what others bring."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.execution import CallStatus
from artoo.ports.tools import ToolSpec
from artoo.tools.tool import Arguments, Outcome, Tool
from artoo.tools.waiting import waiting_for_a_person

Confirm = Callable[[ConfirmationRequest], Awaitable[Consent]]
"""Asks a person, or whatever stands for one. Without a terminal the answer is no."""


async def nobody(request: ConfirmationRequest) -> Consent:
    """Where nobody can be asked the answer is no."""
    return Consent.NO


@dataclass(slots=True)
class Asking:
    """A tool that asks before each call. A yes holds for exactly these arguments, a no for the rest of the task."""

    inner: Tool
    confirm: Confirm = nobody
    _answers: dict[str, Consent] = field(default_factory=dict[str, Consent])

    @property
    def spec(self) -> ToolSpec:
        return self.inner.spec

    @property
    def wall_seconds(self) -> float:
        return self.inner.wall_seconds

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return self.inner.identities(arguments)

    def target(self, arguments: Arguments) -> str:
        return self.inner.target(arguments)

    async def run(self, arguments: Arguments) -> Outcome:
        """The inner tool's outcome, or a refusal that says that a person said no."""
        name = self.inner.spec.name
        act = json.dumps([name, dict(sorted(arguments.items()))], ensure_ascii=True)
        digest = hashlib.sha256(act.encode()).hexdigest()
        consent = self._answers.get(digest)
        if consent is None:
            details = tuple(f"{key}: {value}" for key, value in arguments.items())
            with waiting_for_a_person():
                consent = await self.confirm(
                    ConfirmationRequest(digest=digest, title=f"run {name}", details=details)
                )
            if consent is not Consent.ONCE:
                self._answers[digest] = consent
        if consent is Consent.NO:
            reason = f"{name} was not run: it changes things, and nobody agreed to this call"
            return Outcome(status=CallStatus.REFUSED, reason=reason)
        return await self.inner.run(arguments)
