"""The calls, approvals and processes of a resumed task's earlier processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.events import NetworkUsed
from artoo.contracts.execution import CallEffects, ToolCall, ToolStarted

Consented = tuple[ConfirmationRequest, ConfirmationAnswer]
"""A question to the user, and the answer to it."""


@dataclass(frozen=True, slots=True)
class Past:
    """The history of one task. In mappings and sets of calls, the key is the id of a call (`act`).

    `started`: the calls that were announced and have no record, each with its last announcement. `ended`: the calls
    that have a record. `consented`: every question that was answered, oldest first. `calls`: the records of calls,
    in order. `redacted`: the mark that replaces secrets in the log. `used`: the network connections of the task's
    commands. `changed`: pairs of a subtask and a printable path that this subtask changed. `died`: the processes
    that ended in the crash, by subtask, each as `ID (command)`.
    """

    started: Mapping[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])
    ended: frozenset[str] = frozenset()
    consented: tuple[Consented, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    redacted: str = ""
    used: tuple[NetworkUsed, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()
    died: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def cut_off(self, act: str) -> ToolStarted | None:
        """Return the announcement of a call that has no record and may have had effects. Return None if it had none
        or was never announced."""
        started = self.started.get(act)
        return None if started is None or started.effects is CallEffects.NONE else started

    def may_use_once(self, act: str) -> bool:
        """Check whether an approval that was given once for this call (`act`) is still unused."""
        return bool(act) and act not in self.ended and self.cut_off(act) is None
