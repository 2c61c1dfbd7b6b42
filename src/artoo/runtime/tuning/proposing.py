"""Propose better hyperparameters, with candidate values, the least number of tasks, and the confidence level.

One half of the tasks is used to choose a value, and the other half to judge it. The functions are pure.

The control law is applied again to the record of each task. If it decides as before, or ends the task earlier, the
record contains the outcome. If it would continue differently, the outcome is unknown, because no record contains
it.

All other values of all hyperparameters are tried, each alone, and only one is chosen. The half that is used to
choose is not used to judge. Otherwise the best of many values would be overrated by chance. Intervals are
percentile bootstraps over tasks, at 95 % for all task types together (Bonferroni).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from artoo.contracts.base import Contract
from artoo.contracts.solution import Directive
from artoo.control.hyperparameters import MOST_COST, Hyperparameters
from artoo.loops.medium.trajectory import Trajectory
from artoo.runtime.tuning.records import ENDS, EndedTask

LEAST_TASKS = 40
"""The minimum number of tasks of a type for which a proposal is made."""
LEAST_DIFFERENT = 5
"""The minimum number of tasks in a half that would have ended differently and whose outcome is known."""
LEAST_KNOWN = 0.7
"""The minimum share of known outcomes among the tasks that would have continued or ended differently."""
RESAMPLES = 500
"""The minimum number of resamples. More are made if many types are tested, because the intervals then need more
values in the tails."""
LEVEL = 0.95
ALL = ""
"""The type that stands for all tasks together."""

VALUES: Mapping[str, tuple[float | int, ...]] = {
    "delta": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    "epsilon": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3),
    "rho": (0.25, 0.4, 0.5, 0.6, 0.75),
    "theta": (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    "kill_after": (1, 2, 3),
    "alpha": (0.3, 0.6, 0.9),
    "beta": (0.15, 0.3, 0.45),
    "lambda_": (0.2, 0.4, 0.6),
    "w1": (0.4, 0.6),
    "w2": (0.2, 0.4, 0.6),
}
"""The values that are tried for each hyperparameter. Only one number is changed at a time."""

Decisions = tuple[tuple[Directive, ...], ...]
"""The decisions that one law makes along each record."""


class Effect(NamedTuple):
    """The effect of a change on a task. It has the share of criteria that are met, the model calls, and the sum of
    both in calls (`gain`)."""

    met: float
    calls: float
    gain: float


class Proposed(Contract):
    """A better value of a hyperparameter. It was judged by `tasks` tasks. `different` of them would have been
    decided differently, and the outcome of `known` of these is known. The effects are means over the tasks, each
    with its interval (value, lowest, highest). `met` is the share of criteria, `calls` the number of calls, and
    `gain` the sum of both in calls.
    """

    type: str
    name: str
    before: float
    value: float
    tasks: int
    different: int
    known: int
    met: tuple[float, float, float]
    calls: tuple[float, float, float]
    gain: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class TypeProposal:
    """The result for one type of task. It is a proposal, or the reason why there is none.

    `enough`: whether there are enough tasks of the type. `silent`: hyperparameters about which the logs contain too
    little.
    """

    type: str
    tasks: int
    proposed: Proposed | None = None
    why: str = ""
    silent: tuple[str, ...] = ()
    enough: bool = True


@dataclass(frozen=True, slots=True)
class _Tried:
    """Another value of one hyperparameter, and the decisions that it gives in the half that is used to choose."""

    name: str
    value: float | int
    h: Hyperparameters
    decided: Decisions


@dataclass(frozen=True, slots=True)
class _Compared:
    """The known effects of another law, and the number of tasks that it would decide differently."""

    effects: tuple[Effect, ...]
    different: int
    known: int

    @property
    def sure(self) -> float:
        """Return the mean gain minus one standard error."""
        mean = _mean(self.effects).gain
        return mean - sum((each.gain - mean) ** 2 for each in self.effects) ** 0.5 / len(self.effects)


def proposals(
    records: Sequence[EndedTask], law_for: Callable[[str], Hyperparameters], worth: float, *, seed: int = 0
) -> list[TypeProposal]:
    """Return the results by type. If there is more than one type, also return a result for all tasks together.

    `law_for` returns the present hyperparameters of a type. `worth`: the number of model calls that meeting all
    criteria of a task is worth.
    """
    groups = dict[str, list[EndedTask]]()
    for record in records:
        groups.setdefault(record.type, []).append(record)
    if len(groups) > 1:
        groups[ALL] = [record for record in records if law_for(record.type) == law_for(ALL)]
    tested = sum(len(group) >= LEAST_TASKS for group in groups.values())
    level = 1 - (1 - LEVEL) / max(1, tested)
    return [
        _said(name, group, law_for(name), worth, level, random.Random(seed))
        if len(group) >= LEAST_TASKS
        else TypeProposal(name, len(group), why=f"fewer than {LEAST_TASKS} tasks", enough=False)
        for name, group in sorted(groups.items())
    ]


def others(h: Hyperparameters) -> Iterator[tuple[str, float | int, Hyperparameters]]:
    """Yield each variant of the hyperparameters in which exactly one is changed."""
    room = {"w1": MOST_COST - h.w2, "w2": MOST_COST - h.w1}
    for name, values in VALUES.items():
        for value in values:
            if value != getattr(h, name) and value <= room.get(name, value):
                yield name, value, replace(h, **{name: value})  # pyright: ignore[reportArgumentType]


def decisions(record: EndedTask, h: Hyperparameters) -> tuple[Directive, ...]:
    """Return the decisions that the law makes with these hyperparameters at each step of the record."""
    trajectory, found = Trajectory(h), list[Directive]()
    for step in record.steps:
        measured = trajectory.measure(step.gap, step.elapsed_ms, step.budget_ms)
        decided = trajectory.decide(measured, may_replan=step.may_replan)
        found.append(Directive(decided.state.value) if step.by_law else step.taken)
        trajectory.advance(measured, step.taken)
    return tuple(found)


def _said(
    type_: str, records: Sequence[EndedTask], h: Hyperparameters, worth: float, level: float, chance: random.Random
) -> TypeProposal:
    choosing, judging = records[::2], records[1::2]
    present = tuple(decisions(record, h) for record in choosing)
    by_decisions = dict[Decisions, _Tried]()
    # If several values lead to the same decisions, only the one with the smallest change is tried.
    for name, value, law in sorted(others(h), key=lambda each: abs(each[1] - getattr(h, each[0]))):
        decided = tuple(decisions(record, law) for record in choosing)
        if decided != present:
            by_decisions.setdefault(decided, _Tried(name, value, law, decided))
    tried = tuple(by_decisions.values())
    scored = [(_compared(choosing, present, each.decided, worth), each) for each in tried]
    silent = tuple(sorted({each.name for found, each in scored if found is None}))
    better = [(found.sure, each) for found, each in scored if found is not None and found.sure > 0]
    if not better:
        why = "no other number is better, as far as the logs tell"
        return TypeProposal(
            type_, len(records), why=why if tried else "no other number decides otherwise", silent=silent
        )
    best = max(better, key=lambda found: found[0])[1]
    judged = _judged(type_, best, judging, h, worth, level, chance)
    if isinstance(judged, str):
        return TypeProposal(type_, len(records), why=judged, silent=silent)
    return TypeProposal(type_, len(records), judged, silent=silent)


def _judged(
    type_: str,
    best: _Tried,
    records: Sequence[EndedTask],
    h: Hyperparameters,
    worth: float,
    level: float,
    chance: random.Random,
) -> Proposed | str:
    present, other = (tuple(decisions(record, law) for record in records) for law in (h, best.h))
    name = best.name.rstrip("_")
    found = _compared(records, present, other, worth)
    if found is None:
        return f"{name} = {best.value:g} looked better, but too few tasks of the other half can tell"
    count = max(RESAMPLES, round(2 / (1 - level)))
    samples = [_mean(chance.choices(found.effects, k=len(found.effects))) for _ in range(count)]
    tail = max(0, int((1 - level) / 2 * count) - 1)
    ordered = [sorted(column) for column in zip(*samples, strict=True)]
    low, high = (Effect(*(column[at] for column in ordered)) for at in (tail, -1 - tail))
    if low.gain <= 0:
        return f"{name} = {best.value:g} looked better in one half of the tasks, and is not surely so in the other"
    met, calls, gain = zip(_mean(found.effects), low, high, strict=True)
    return Proposed(
        type=type_,
        name=name,
        before=getattr(h, best.name),
        value=best.value,
        tasks=len(records),
        different=found.different,
        known=found.known,
        met=met,
        calls=calls,
        gain=gain,
    )


def _compared(records: Sequence[EndedTask], present: Decisions, other: Decisions, worth: float) -> _Compared | None:
    """Compare two laws. Return None if the outcome is known for too few tasks."""
    effects, different, known = list[Effect](), 0, 0
    for record, now, then in zip(records, present, other, strict=True):
        if now == then:
            effects.append(Effect(0.0, 0.0, 0.0))
            continue
        different += 1
        before, after = _outcome(record, now), _outcome(record, then)
        if before is not None and after is not None:
            known += 1
            met, calls = after[0] - before[0], after[1] - before[1]
            effects.append(Effect(met, calls, worth * met - calls))
    if known < max(LEAST_DIFFERENT, LEAST_KNOWN * different):
        return None
    return _Compared(tuple(effects), different, known)


def _outcome(record: EndedTask, decided: Sequence[Directive]) -> tuple[float, float] | None:
    """Return the share of criteria met and the number of calls when a task would end. Return None if the record
    does not show it."""
    for step, now in zip(record.steps, decided, strict=True):
        if now in ENDS:
            return step.met, step.calls
        if now is not step.taken:
            return None
    raise ValueError(f"the record of {record.task_id} does not end")


def _mean(effects: Sequence[Effect]) -> Effect:
    return Effect(*(sum(column) / len(effects) for column in zip(*effects, strict=True)))
