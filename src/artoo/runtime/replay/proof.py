"""Prove the decisions of a finished task: run it again from its log, and hold the log against the invariants.

The replay recomputes every message of every role. The invariants see what a replay takes from the log as given:
what the user, the gate and the bus said, in which order and in answer to what.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from artoo.auditor.watch import Watch
from artoo.contracts.audit import Finding
from artoo.contracts.envelope import Envelope
from artoo.ports.spool import Gap
from artoo.runtime.replay.conductor import GRACE, PATIENCE
from artoo.runtime.replay.replay import Replayed, replay


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found. `violations`: findings of the invariants; anomalies are no objection to a decision."""

    replayed: Replayed
    violations: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """True if every decision was reached again and no invariant was broken."""
        return self.replayed.difference is None and not self.violations


async def prove(log: Iterable[Envelope | Gap], *, patience: float = PATIENCE, grace: float = GRACE) -> Proof:
    """Replay the log and hold it against the invariants. `patience`, `grace`: see `replay`.

    Raises ConfigurationError for a log that cannot be replayed, MessageUnreadable for a damaged one.
    """
    messages = list(log)
    replayed = await replay(messages, patience=patience, grace=grace)
    return Proof(replayed, tuple(_violations(messages)))


def _violations(messages: Sequence[Envelope | Gap]) -> Iterable[Finding]:
    said = [each for each in messages if isinstance(each, Envelope)]
    watch = Watch(recall=lambda _: said)
    for envelope in said:
        yield from (each for each in watch.observe(envelope) if each.nature == "violation")
