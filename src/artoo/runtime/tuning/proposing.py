"""From records to proposals: chosen on one half of the tasks, judged on the other (pure).

Of all other values of all numbers one is chosen by the half that is not used to judge, so that the best of many is
not taken for better than it is; intervals are percentile bootstraps over tasks, with everything estimated anew in
each resample, at 95 % for all types of tasks together (Bonferroni).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from artoo.contracts.base import Contract
from artoo.control.hyperparameters import MOST_COST, Hyperparameters
from artoo.runtime.tuning.records import Record
from artoo.runtime.tuning.values import LEAST_KNOWN, Evidence, Law, Value

LEAST_TASKS = 40
"""Of a type, below which nothing is said about it."""
LEAST_DIFFERENT = 5
"""Tasks of a half that would have gone another way, and of which it is known where to."""
RESAMPLES = 500
"""At least; more where many types are tested, so that their tails have something in them."""
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
"""What is tried of each number, one number at a time."""


class Effect(NamedTuple):
    """What a change does to a task: criteria met (a share), model calls, and both in calls (`gain`)."""

    met: float
    calls: float
    gain: float


class Proposed(Contract):
    """A number that would be better. `tasks` judged it, of which `different` would have gone another way, and of
    these it is known for `known` where to. Effects are a task's, each with its interval (value, least, most): `met`
    of criteria (a share), `calls`, and `gain` in calls.
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
class Said:
    """What a type's logs say: a proposal or why there is none.

    `enough`: there are as many tasks as it takes. `silent`: numbers of which they can say nothing.
    """

    type: str
    tasks: int
    proposed: Proposed | None = None
    why: str = ""
    silent: tuple[str, ...] = ()
    enough: bool = True


@dataclass(frozen=True, slots=True)
class _Tried:
    name: str
    value: float | int
    law: Law


def proposals(
    records: Sequence[Record],
    law_for: Callable[[str], Hyperparameters],
    worth: float,
    *,
    seed: int = 0,
) -> list[Said]:
    """What the records say, by type, and of all together when there is more than one.

    `law_for` gives a type's present numbers; `worth` is how many model calls all criteria of a task are worth.
    """
    groups = dict[str, list[Record]]()
    for record in records:
        groups.setdefault(record.type, []).append(record)
    if len(groups) > 1:
        groups[ALL] = [record for record in records if law_for(record.type) == law_for(ALL)]
    tested = sum(len(group) >= LEAST_TASKS for group in groups.values())
    level = 1 - (1 - LEVEL) / max(1, tested)
    return [
        _said(name, group, law_for(name), worth, level, seed)
        if len(group) >= LEAST_TASKS
        else Said(name, len(group), why=f"fewer than {LEAST_TASKS} tasks", enough=False)
        for name, group in sorted(groups.items())
    ]


def _said(type_: str, records: Sequence[Record], h: Hyperparameters, worth: float, level: float, seed: int) -> Said:
    choosing, judging = (Evidence(records[half::2]) for half in (0, 1))
    present = Law.along(choosing.records, h)
    tried = [_Tried(name, value, Law.along(choosing.records, other)) for name, value, other in others(h)]
    different = _distinct(tried, present, h)
    scored = [(_compared(choosing, present, each.law, worth), each) for each in different]
    silent = tuple(sorted({each.name for found, each in scored if found is None}))
    better = [(found.sure, each) for found, each in scored if found is not None and found.sure > 0]
    if not better:
        why = (
            "no other number is better, as far as the logs tell"
            if different
            else "no other number decides otherwise"
        )
        return Said(type_, len(records), why=why, silent=silent)
    _, best = max(better, key=lambda found: found[0])
    proposed = _judged(type_, best, judging, h, worth, level, seed)
    if isinstance(proposed, str):
        return Said(type_, len(records), why=proposed, silent=silent)
    return Said(type_, len(records), proposed, silent=silent)


def others(h: Hyperparameters) -> Iterator[tuple[str, float | int, Hyperparameters]]:
    """The numbers with one of them changed, each change once."""
    room = {"w1": MOST_COST - h.w2, "w2": MOST_COST - h.w1}
    for name, values in VALUES.items():
        for value in values:
            if value != getattr(h, name) and value <= room.get(name, value):
                yield name, value, replace(h, **{name: value})  # pyright: ignore[reportArgumentType]


def _distinct(tried: Sequence[_Tried], present: Law, h: Hyperparameters) -> list[_Tried]:
    """Of values that decide the same, the one that changes least."""
    by_decisions = dict[object, _Tried]()
    for each in sorted(tried, key=lambda one: abs(one.value - getattr(h, one.name))):
        by_decisions.setdefault(each.law.decided, each)
    return [each for each in by_decisions.values() if each.law.decided != present.decided]


@dataclass(frozen=True, slots=True)
class _Compared:
    """An effect, its gain less a standard error (`sure`), the tasks that go another way, those known of them."""

    effect: Effect
    sure: float
    different: int
    known: int


def _compared(evidence: Evidence, present: Law, other: Law, worth: float) -> _Compared | None:
    """None when it is known of too few tasks what would have become of them."""
    everybody = range(len(evidence.records))
    gains = _effects(evidence, present, other, worth, everybody)
    differing = [n for n in everybody if present.decided[n] != other.decided[n]]
    known = sum(gains[number] is not None for number in differing)
    if known < max(LEAST_DIFFERENT, LEAST_KNOWN * len(differing)):
        return None
    found = [each for each in gains if each is not None]
    effect = _mean(found)
    spread = (sum((each.gain - effect.gain) ** 2 for each in found) / len(found) ** 2) ** 0.5
    return _Compared(effect, effect.gain - spread, len(differing), known)


def _judged(
    type_: str, best: _Tried, evidence: Evidence, h: Hyperparameters, worth: float, level: float, seed: int
) -> Proposed | str:
    present, other = Law.along(evidence.records, h), Law.along(evidence.records, best.law.h)
    named = f"{best.name.rstrip('_')} = {best.value:g}"
    found = _compared(evidence, present, other, worth)
    if found is None:
        return f"{named} looked better, but too few tasks of the other half can tell"
    everybody, chance = range(len(evidence.records)), random.Random(seed)
    count = max(RESAMPLES, round(2 / (1 - level)))
    samples = list[Effect]()
    for _ in range(count):
        sample = chance.choices(everybody, k=len(everybody))
        effects = [each for each in _effects(evidence, present, other, worth, sample) if each is not None]
        samples.append(_mean(effects) if effects else Effect(0.0, 0.0, 0.0))
    tail = max(0, int((1 - level) / 2 * count) - 1)
    ordered = [sorted(column) for column in zip(*samples, strict=True)]
    low, high = (Effect(*(column[at] for column in ordered)) for at in (tail, -1 - tail))
    if low.gain <= 0:
        return f"{named} looked better in one half of the tasks, and is not surely so in the other"
    met, calls, gain = zip(found.effect, low, high, strict=True)
    return Proposed(
        type=type_,
        name=best.name.rstrip("_"),
        before=getattr(h, best.name),
        value=best.value,
        tasks=len(everybody),
        different=found.different,
        known=found.known,
        met=met,
        calls=calls,
        gain=gain,
    )


def _effects(
    evidence: Evidence, present: Law, other: Law, worth: float, sample: Sequence[int]
) -> list[Effect | None]:
    """For each task of the sample; None where nobody knows. Where both laws do what was done, nothing changes."""
    moved = {number for number in sample if not (present.follows[number] and other.follows[number])}
    taken = evidence.taken(sample)
    before, after = (evidence.values(law, moved, taken) for law in (present, other))
    still = Effect(0.0, 0.0, 0.0)
    return [_effect(before[number], after[number], worth) if number in moved else still for number in sample]


def _effect(before: Value | None, after: Value | None, worth: float) -> Effect | None:
    if before is None or after is None:
        return None
    met, calls = after.met - before.met, after.calls - before.calls
    return Effect(met, calls, worth * met - calls)


def _mean(effects: Sequence[Effect]) -> Effect:
    return Effect(*(sum(column) / len(effects) for column in zip(*effects, strict=True)))
