"""What earlier processes of a resumed task left, and what follows for a call that was cut off.

started, only reads ──────────► RunAgain
started, in the task's view ──► RunAgain   the view has nothing of it, or knows how it ended
started, reaches outside ─────► AskFirst   nobody knows
not started ──────────────────► None       a call like any other
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.execution import CallEffects, ToolCall, ToolStarted
from artoo.contracts.network import NetworkUsed

Consented = tuple[ConfirmationRequest, ConfirmationAnswer]
"""A question and the answer that somebody gave."""


@dataclass(frozen=True, slots=True)
class RunAgain:
    """Nothing of it took effect, or it has no effects."""


@dataclass(frozen=True, slots=True)
class AskFirst:
    """It may have taken effect. Only a person can decide to do it again."""

    started: ToolStarted


Verdict = RunAgain | AskFirst


@dataclass(frozen=True, slots=True)
class Past:
    """The past of one task, by act where it says so.

    `started`: calls that went out and have no record, each as far as it went. `consented`: every answered question,
    oldest first. `calls`: the records, in order. `redacted`: the mark that stands in the log where a secret was.
    `used`: what its commands have sent over the network.
    """

    started: Mapping[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])
    ended: frozenset[str] = frozenset()
    consented: tuple[Consented, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    redacted: str = ""
    used: tuple[NetworkUsed, ...] = ()

    def verdict(self, act: str) -> Verdict | None:
        """What follows for a call without a record; None when it never went out."""
        started = self.started.get(act)
        if started is None:
            return None
        return AskFirst(started) if started.effects is CallEffects.OUTSIDE else RunAgain()

    def may_use_once(self, act: str) -> bool:
        """Whether a yes that was given once to this act has not been used: it has not taken effect yet."""
        return bool(act) and act not in self.ended and not isinstance(self.verdict(act), AskFirst)
