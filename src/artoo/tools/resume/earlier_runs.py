"""The past of a resumed task: what its earlier processes left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.execution import CallEffects, ToolCall, ToolStarted
from artoo.contracts.network import NetworkUsed

Consented = tuple[ConfirmationRequest, ConfirmationAnswer]
"""A question and the answer that someone gave."""


@dataclass(frozen=True, slots=True)
class Past:
    """The past of one task, by act where it says so.

    `started`: calls that went out and have no record, each as far as it went. `consented`: every answered question,
    oldest first. `calls`: the records, in order. `redacted`: the mark in the log where a secret was.
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

    def cut_off(self, act: str) -> ToolStarted | None:
        """Return a call without a record that may have had effects; None when it had none, or never went out."""
        started = self.started.get(act)
        return None if started is None or started.effects is CallEffects.NONE else started

    def may_use_once(self, act: str) -> bool:
        """Check whether an approval that was given once to this `act` has not been used."""
        return bool(act) and act not in self.ended and self.cut_off(act) is None
