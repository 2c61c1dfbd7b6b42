"""The calls, approvals and processes of a resumed task's earlier processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.execution import CallEffects, ToolCall, ToolStarted
from artoo.contracts.network import NetworkUsed

Consented = tuple[ConfirmationRequest, ConfirmationAnswer]
"""A question and its answer."""


@dataclass(frozen=True, slots=True)
class Past:
    """The history of one task. Mappings and sets of calls have the id of the call (`act`) as key.

    `started`: calls that were announced and have no record, each with its last announcement. `ended`: calls with a
    record. `consented`: every answered question, oldest first. `calls`: the records, in order. `redacted`: the mark
    that replaces a secret in the log. `used`: the network connections of its commands. `changed`: pairs of a
    subtask and a printable path that it changed. `died`: processes that ended with the crash, by subtask, each as
    `ID (command)`.
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
        """Return a call without a record that may have had effects; None if it had none or was never announced."""
        started = self.started.get(act)
        return None if started is None or started.effects is CallEffects.NONE else started

    def may_use_once(self, act: str) -> bool:
        """Check whether an approval that was given once for this `act` is still unused."""
        return bool(act) and act not in self.ended and self.cut_off(act) is None
