"""Read the facts for planning in one snapshot, with the limits on rules, known things and recent entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from artoo.contracts.memory import CalibrationEntry, Megram, MemoryAction, Potentials
from artoo.contracts.tags import Pair
from artoo.memory import keys, reading
from artoo.store.query import Query, Row

MOST_RULES = 10
RECENT = 5
KNOWN = 10
NOTES = 3
HYPOTHESES = 3


@dataclass(frozen=True, slots=True)
class Facts:
    """The potentials and the rules of the pairs that were asked about, the texts of their newest entries, known
    places, and hypotheses.

    `noted`: the ids of the rules for which a contradiction was recorded before.
    """

    live: tuple[Potentials, ...]
    rules: tuple[Megram, ...]
    noted: frozenset[str]
    contents: dict[Pair, str]
    known: tuple[str, ...]
    hypotheses: tuple[CalibrationEntry, ...]


def gather(query: Query, macro: Pair, asked: Sequence[Pair], now_us: int) -> Facts:
    """Read the facts for planning requests of one kind. A pair with `thing:` gives known places, and any other pair
    gives advice."""
    # A place is shown only as long as the evidence supports it. All other pairs give advice.
    things = [pair for pair in asked if pair.space.startswith("thing:")]
    others = [pair for pair in asked if not pair.space.startswith("thing:")]
    every = (*others, *things)
    cells, ruled, (notes, *places), (guesses,) = query.each(
        (reading.SUMS, reading.about(every)),
        (reading.RULES, reading.about(others, MOST_RULES)),
        (reading.KNOWN, reading.about((macro, *things), KNOWN)),
        (reading.GUESSES, [(keys.escape(macro.space), *keys.under("tool:"), HYPOTHESES)]),
    )
    sums = reading.added_up(query, every, cells, now_us)
    live = tuple(map(reading.classified, others, sums))
    rules = [rule for rows in ruled for rule in reading.megrams(rows)]
    guessed = reading.megrams(guesses)[::-1]
    shown = [each.pair for each in live if each.action is not MemoryAction.IGNORE]
    telling = list(dict.fromkeys((*shown, *(rule.pair for rule in rules))))
    # This is the evidence of each guessed tool for this kind of request.
    against = [Pair(each.entity, each.space) for each in guessed]
    found, said, tried = query.each(
        (reading.NEWEST, reading.about(telling, RECENT)),
        (reading.DISSONANCE, [(*reading.key_of(rule.pair), rule.sigma) for rule in rules]),
        (reading.SUMS, reading.about(against)),
    )
    newest = {pair: reading.megrams(rows) for pair, rows in zip(telling, found, strict=True)}
    untried = reading.added_up(query, against, tried, now_us)
    known = [each.content for each in reading.megrams(notes) if each.sigma == 0][:NOTES]
    for rows, believed in zip(places, sums[len(others) :], strict=True):
        # A place where a thing was found is shown only as long as later evidence supports it.
        if believed.decision > 0:
            known += [each.content for each in reading.megrams(rows)]
    return Facts(
        live=live,
        rules=tuple(rules),
        noted=frozenset(_noted(rules, said, newest)),
        contents={each.pair: _telling(each, newest[each.pair]) for each in live if each.pair in newest},
        known=tuple(known[:KNOWN]),
        hypotheses=tuple(
            CalibrationEntry(space=each.space, entity=each.entity, content=each.content)
            for each, so_far in zip(guessed, untried, strict=True)
            if so_far.decision >= 0
        ),
    )


def _telling(found: Potentials, newest: Sequence[Megram]) -> str:
    """Return the text of the newest entry that agrees with the sums. If the pair is recommended, this is a success,
    otherwise a failure.

    If there is none, return an empty string, because a warning must not quote a success.
    """
    side = 1 if found.action is MemoryAction.EXPLOIT else -1
    return next((each.content for each in newest if each.sigma * side > 0), "")


def _noted(
    rules: Sequence[Megram], said: Sequence[Sequence[Row]], newest: dict[Pair, list[Megram]]
) -> Iterator[str]:
    """Return the ids of the rules whose newest dissonance is newer than the newest direct evidence of their pair.

    Every task that reads memory finds the same contradiction, but only the first one must record it.
    """
    for rule, rows in zip(rules, said, strict=True):
        for against in reading.megrams(rows):
            if all(reading.age(against) > reading.age(each) for each in newest[rule.pair][:1]):
                yield rule.id
