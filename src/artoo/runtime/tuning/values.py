"""What tasks would have come to under other numbers, as far as their logs can tell (pure).

Along its own record a task's law is replayed. Where it decides as was decided, what came is what was recorded.
Where it ends a task earlier, what it delivers and has cost by then is recorded too. Where it goes another way, the
mean of what came after that directive in *comparable rounds* stands for it: the same round of a task, about the
same D and P, nearer or further than before, the same conditions of a success (coarsened exact matching: Iacus, King
and Porro 2012). Where there are too few of them, nobody knows. Later deviations are treated like the first, so it
is a whole policy that is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from artoo.contracts.solution import Directive
from artoo.control.hyperparameters import Hyperparameters
from artoo.loops.medium.trajectory import Trajectory
from artoo.runtime.tuning.records import ENDS, Record

LEAST_COMPARABLE = 5
"""Tasks in which a directive was taken in comparable rounds, from which on it is known what comes after it."""

LEAST_KNOWN = 0.7
"""Share of what it takes to know a whole: of the rounds after a directive, and of the tasks that go another way."""

_WIDTH_D, _WIDTH_P, _CHANGE = 0.25, 0.5, 0.125

State = tuple[int, bool, bool, int, int, int]
Way = tuple[State, Directive]
Place = tuple[int, int]
"""Number of a record, number of its step."""
Taken = dict[Way, list[Place]]
"""Where each way was taken."""


class Value(NamedTuple):
    """What a task comes to: share of criteria met, and model calls."""

    met: float
    calls: float


def decisions(record: Record, h: Hyperparameters) -> tuple[Directive, ...]:
    """What the law with these numbers decides at each step of the record."""
    trajectory, found = Trajectory(h), list[Directive]()
    for step in record.steps:
        measured = trajectory.measure(step.gap, step.elapsed_ms, step.budget_ms)
        decided = trajectory.decide(measured, may_replan=step.may_replan)
        found.append(Directive(decided.state.value) if step.by_law else step.taken)
        trajectory.advance(measured, step.taken)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Law:
    """Numbers, and what they decide along each record; `follows`: whether that is what was decided."""

    h: Hyperparameters
    decided: tuple[tuple[Directive, ...], ...]
    follows: tuple[bool, ...]

    @classmethod
    def along(cls, records: Sequence[Record], h: Hyperparameters) -> Law:
        """Replays all records."""
        decided = tuple(decisions(record, h) for record in records)
        done = (tuple(step.taken for step in record.steps) for record in records)
        return cls(h, decided, tuple(a == b for a, b in zip(decided, done, strict=True)))


@dataclass
class Evidence:
    """Records, their rounds by state, and which ways are known well enough."""

    records: Sequence[Record]
    states: list[list[State]] = field(init=False)

    def __post_init__(self) -> None:
        self.states = [_states(record) for record in self.records]

    @cached_property
    def known(self) -> frozenset[Way]:
        """Ways that enough different tasks took."""
        takers = dict[Way, set[int]]()
        for way, places in self.taken(range(len(self.records))).items():
            takers[way] = {number for number, _ in places}
        return frozenset(way for way, tasks in takers.items() if len(tasks) >= LEAST_COMPARABLE)

    def taken(self, sample: Iterable[int]) -> Taken:
        """Where each way on was taken, in a sample of the records (a number may be in it more than once)."""
        found = dict[Way, list[Place]]()
        for number in sample:
            for at, step in enumerate(self.records[number].steps):
                if step.taken not in ENDS:
                    found.setdefault((self.states[number][at], step.taken), []).append((number, at))
        return found

    def values(self, law: Law, numbers: Iterable[int], taken: Taken) -> dict[int, Value | None]:
        """What tasks come to under a law, by the ways that were `taken`; None: nobody knows."""
        outlook = _Outlook(self, law, taken)
        return {number: outlook.at(number, 0) for number in numbers}


class _Outlook:
    """Looks ahead from a place, by the record while the law agrees with it, else by comparable rounds."""

    def __init__(self, evidence: Evidence, law: Law, taken: Taken) -> None:
        self._evidence, self._law, self._taken = evidence, law, taken
        self._beyond = dict[Way, Value | None]()

    def at(self, number: int, start: int) -> Value | None:
        """Ends: each look goes on to a later round."""
        steps, decided = self._evidence.records[number].steps, self._law.decided[number]
        for at in range(start, len(steps)):
            step, now = steps[at], decided[at]
            if now in ENDS:
                return Value(step.met, step.calls)
            if now is not step.taken:
                beyond = self._after((self._evidence.states[number][at], now))
                return None if beyond is None else Value(beyond.met, beyond.calls + step.calls)
        raise ValueError(f"the record of {self._evidence.records[number].task_id} does not end")

    def _after(self, way: Way) -> Value | None:
        if way not in self._beyond:
            self._beyond[way] = self._mean(way)
        return self._beyond[way]

    def _mean(self, way: Way) -> Value | None:
        """What came after it, with the calls from there on."""
        places = self._taken.get(way, []) if way in self._evidence.known else []
        came = list[Value]()
        for number, at in places:
            value = self.at(number, at + 1)
            if value is not None:
                came.append(Value(value.met, value.calls - self._evidence.records[number].steps[at].calls))
        if not came or len(came) < LEAST_KNOWN * len(places):
            return None
        return Value(sum(each.met for each in came) / len(came), sum(each.calls for each in came) / len(came))


def _states(record: Record) -> list[State]:
    states, before = list[State](), None
    for number, step in enumerate(record.steps):
        gap = step.gap
        change = 0.0 if before is None else before - gap.distance
        before = gap.distance
        states.append(
            (
                number,
                gap.evidence.allows_success,
                gap.criteria == 0,
                round(gap.distance / _WIDTH_D),
                round(gap.implausibility / _WIDTH_P),
                (change > _CHANGE) - (change < -_CHANGE),
            )
        )
    return states
