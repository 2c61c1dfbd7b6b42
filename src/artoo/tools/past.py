"""What earlier processes of a resumed task left, and what follows for a call that was cut off.

noted in the task's view ─────► TookEffect  whatever the log says: its changes are there
started, only reads ──────────► RunAgain
started, in the task's view ──► RunAgain    the view has nothing of it
started, reaches outside ─────► AskFirst    nobody knows
not started ──────────────────► None       a call like any other
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.execution import CallEffects, ToolCall, ToolStarted
from artoo.contracts.network import NetworkUsed
from artoo.ports.sandbox import ActNote

Consented = tuple[ConfirmationRequest, ConfirmationAnswer]
"""A question and the answer that somebody gave."""


@dataclass(frozen=True, slots=True)
class RunAgain:
    """Nothing of it took effect, or it has no effects."""


@dataclass(frozen=True, slots=True)
class AskFirst:
    """It may have taken effect. Only a person can decide to do it again."""

    started: ToolStarted


@dataclass(frozen=True, slots=True)
class TookEffect:
    """It ended, and its changes are in the view; only its record was lost."""

    note: ActNote


Verdict = RunAgain | AskFirst | TookEffect


@dataclass(frozen=True, slots=True)
class Past:
    """The past of one task, by act where it says so.

    `started`: calls that went out and have no record, each as far as it went. `consented`: every answered question,
    oldest first. `calls`: the records, in order. `redacted`: the mark that stands in the log where a secret was.
    `used`: what its commands have sent over the network. `notes`: how calls ended whose changes are in its view.
    `joined`: subtasks whose forks are in the task's view already.
    """

    started: Mapping[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])
    ended: frozenset[str] = frozenset()
    consented: tuple[Consented, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    redacted: str = ""
    used: tuple[NetworkUsed, ...] = ()
    notes: Mapping[str, ActNote] = field(default_factory=dict[str, ActNote])
    joined: frozenset[str] = frozenset()

    def verdict(self, act: str) -> Verdict | None:
        """What follows for a call without a record; None when it never went out."""
        note = self.notes.get(act)
        if note is not None:
            return TookEffect(note)
        started = self.started.get(act)
        if started is None:
            return None
        return AskFirst(started) if started.effects is CallEffects.OUTSIDE else RunAgain()

    def may_use_once(self, act: str) -> bool:
        """Whether a yes that was given once to this act has not been used: it has not taken effect yet."""
        return bool(act) and act not in self.ended and not isinstance(self.verdict(act), AskFirst | TookEffect)
