"""`artoo log replay`, which runs a task again from its log and proves its invariants.

The replay uses no model, tools, memory or network. Reference: SPEC section 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Never, cast

from artoo.auditor.watch import Watch
from artoo.bus.inprocess import InProcessBus
from artoo.contracts.audit import Finding
from artoo.contracts.envelope import Envelope
from artoo.contracts.solution import Cost, Decided, FinalResult, Halt
from artoo.memory.absent import NoMemory
from artoo.ports.evidence import EvidenceSource
from artoo.ports.spool import Gap
from artoo.ports.surroundings import TurnSource
from artoo.ports.tools import Tools, ToolSpec
from artoo.runtime.app.exception_groups import leaves
from artoo.runtime.app.system import SystemClock
from artoo.runtime.replay.answers import NobodyToAsk, ReplayIds
from artoo.runtime.replay.conductor import GRACE, PATIENCE, Conductor, ReplayClock
from artoo.runtime.replay.difference import Difference, surplus
from artoo.runtime.replay.recording import Recording, read_recording
from artoo.runtime.replay.stage import ReplayContext
from artoo.runtime.task.role_context import Hands, SubTaskSight, TaskMemory
from artoo.runtime.task.task_header import settings_of
from artoo.runtime.task.task_run import TaskRun


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay. `result` is None if the log ends before the task does. `difference` is None if there
    is no difference."""

    recording: Recording
    result: FinalResult | None
    difference: Difference | None

    @property
    def decisions(self) -> tuple[Decided, ...]:
        """Return all decisions in the log, in order."""
        stream = self.recording.stream
        return tuple(each.payload for each in stream if isinstance(each.payload, Decided))


class _EndOfLog(Exception):
    """Raised when the log has ended and the task has not."""


@dataclass(frozen=True, slots=True)
class _Offline:
    """A conductor that repeats the log up to its end and never goes live. It never goes live."""

    conductor: Conductor

    async def run(self) -> None:
        await self.conductor.run()
        if self.conductor.recording.result is None:
            raise _EndOfLog


async def replay(log: Iterable[Envelope | Gap], *, patience: float = PATIENCE, grace: float = GRACE) -> Replayed:
    """Run the task again from its log. `patience`, `grace`: numbers of seconds after which a message counts as
    missing.

    Raises ConfigurationError if the log cannot be replayed, and MessageUnreadable if it is damaged.
    """
    recording = read_recording(log)
    settings = settings_of(recording.opened, recording.request.project)
    clock = ReplayClock(SystemClock(), recording.stream[0].at)
    bus = InProcessBus(clock, ReplayIds())
    conductor = Conductor(recording, clock, bus.repeat, patience=patience, grace=grace)
    nothing = NoMemory("a replay has no memory")
    memory = TaskMemory(nothing, nothing) if recording.opened.memory else None
    stage = ReplayContext(conductor, bus, NobodyToAsk(), no_hands(), ReplayIds(), memory, remembers=False)
    task = TaskRun(recording.task_id, stage, settings, Cost)
    found: list[Difference | None] = []
    try:
        await task.follow(_Offline(conductor))
        found.append(_too_much(conductor))
    except* Difference as group:
        found.extend(leaves(group))
    except* _EndOfLog:
        found.append(None)
    return Replayed(recording, recording.result, found[0])


def _too_much(conductor: Conductor) -> Difference | None:
    """Return a difference if a role has published a message that is not in the log. Return None otherwise."""
    # A Halt interrupts the roles at any point, so after a Halt only an additional decision counts as a difference.
    stream = conductor.recording.stream
    halted = any(isinstance(each.payload, Halt) for each in stream)
    more = [each.envelope for each in conductor.held if not halted or isinstance(each.envelope.payload, Decided)]
    return surplus(stream, more[0]) if more else None


def no_hands() -> Hands:
    """Return placeholders for the tools and sources of a task whose calls are all answered from the log."""
    nothing = SubTaskSight(cast("EvidenceSource", _Nothing()), cast("TurnSource", _Nothing()))
    return Hands(tools=cast("Tools", _Nothing()), whole=nothing, sight=lambda subtask_id: nothing)


class _Nothing:
    """A placeholder for the tools or a source. A replay never calls it, because a role that needs it waits
    instead."""

    specs: tuple[ToolSpec, ...] = ()

    def __getattr__(self, name: str) -> Callable[..., Never]:
        def nothing(*_: object, **__: object) -> Never:
            raise RuntimeError(f"a replay has no {name}; it waits instead (artoo.runtime.replay.conductor)")

        return nothing


@dataclass(frozen=True, slots=True)
class Proof:
    """A replay, and the findings of the invariant checks. `violations` contains only broken invariants, because
    anomalies do not make a decision wrong.
    """

    replayed: Replayed
    violations: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        """Return whether every decision was made again in the same way and no invariant was broken."""
        return self.replayed.difference is None and not self.violations


async def prove(log: Iterable[Envelope | Gap], *, patience: float = PATIENCE, grace: float = GRACE) -> Proof:
    """Replay the log and check its invariants. `patience`, `grace`: see `replay`.

    Raises ConfigurationError if the log cannot be replayed, MessageUnreadable if it is damaged.
    """
    messages = list(log)
    replayed = await replay(messages, patience=patience, grace=grace)
    return Proof(replayed, tuple(_violations(messages)))


def _violations(messages: Sequence[Envelope | Gap]) -> Iterable[Finding]:
    said = [each for each in messages if isinstance(each, Envelope)]
    watch = Watch(recall=lambda _: said)
    for envelope in said:
        yield from (each for each in watch.observe(envelope) if each.nature == "violation")
