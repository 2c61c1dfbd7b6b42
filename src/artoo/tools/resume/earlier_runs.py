"""What earlier processes of a resumed task left, and what follows for a call that a crash cut off.

started, only reads ──────────► RunAgain
started, in the workspace ────► Interrupted  what it left there stays; the model is told, and decides
started, reaches outside ─────► AskFirst     no one knows whether it took effect
not started ──────────────────► None         a call like any other
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.execution import CallEffects, ToolCall, ToolStarted
from artoo.contracts.network import NetworkUsed

Consented = tuple[ConfirmationRequest, ConfirmationAnswer]
"""A question and the answer that someone gave."""


@dataclass(frozen=True, slots=True)
class RunAgain:
    """It has no effects."""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """It worked in the workspace, and may have done a part of its work. artoo does not repeat it."""

    started: ToolStarted


@dataclass(frozen=True, slots=True)
class AskFirst:
    """It may have taken effect. Only a person can decide to do it again."""

    started: ToolStarted


Verdict = RunAgain | Interrupted | AskFirst


@dataclass(frozen=True, slots=True)
class Past:
    """The past of one task, by act where it says so.

    `started`: calls that went out and have no record, each as far as it went. `consented`: every answered question,
    oldest first. `calls`: the records, in order. `redacted`: the mark that stands in the log where a secret was.
    `used`: what its commands have sent over the network. `changed`: pairs of a subtask and a printable path that it
    changed. `died`: processes that ended with the crash, by subtask, each as `ID (command)`.
    """

    started: Mapping[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])
    ended: frozenset[str] = frozenset()
    consented: tuple[Consented, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    redacted: str = ""
    used: tuple[NetworkUsed, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()
    died: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def verdict(self, act: str) -> Verdict | None:
        """Return what follows for a call without a record; None when it never went out."""
        started = self.started.get(act)
        if started is None:
            return None
        match started.effects:
            case CallEffects.OUTSIDE:
                return AskFirst(started)
            case CallEffects.STAGED:
                return Interrupted(started)
            case CallEffects.NONE:
                return RunAgain()

    def may_use_once(self, act: str) -> bool:
        """True if a yes that was given once to this act has not been used: it has not taken effect yet."""
        return bool(act) and act not in self.ended and not isinstance(self.verdict(act), AskFirst | Interrupted)
