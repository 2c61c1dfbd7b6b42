"""Everything that calibration needs to know: one snapshot, one trip over the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from artoo.contracts.memory import CalibrationEntry, Megram, MemoryAction
from artoo.contracts.tags import Pair
from artoo.memory.gathering import (
    HYPOTHESES,
    KNOWN,
    NOTES,
    RECENT,
    RULES,
    Facts,
    guess_about,
    guessed,
    telling,
)
from artoo.memory.postgres import reading, rows
from artoo.memory.reading import age

if TYPE_CHECKING:
    from artoo.memory.postgres.database import Connection


def gather(connection: Connection, macro: Pair, asked: Sequence[Pair], now_us: int) -> Facts:
    """Reads the facts for planning one intent, as the embedded `gather` does."""
    things = [pair for pair in asked if pair.space.startswith("thing:")]
    others = [pair for pair in asked if not pair.space.startswith("thing:")]
    with connection.pipeline():  # all questions at once, then all answers
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        sums = reading.ask_sums(connection, (*others, *things), now_us)
        found_rules = reading.ask_rules(connection, others, RULES)
        found_newest = reading.ask_newest(connection, others, RECENT)
        found_said = reading.ask_dissonance(connection, others)
        found_known = reading.ask_known(connection, (macro, *things), KNOWN)
        guesses = reading.ask_guesses(connection, macro, HYPOTHESES)
        connection.execute("COMMIT")
    every = reading.added_up(sums, len(others) + len(things), now_us)
    live = tuple(map(reading.potentials, others, every))
    rules, newest = reading.placed(found_rules), reading.placed(found_newest)
    said, known = reading.placed(found_said), reading.placed(found_known)
    places = [known.get(1 + at, []) for at in range(len(things)) if every[len(others) + at].decision > 0]
    notes = [each for each in known.get(0, []) if each.sigma == 0][:NOTES]
    return Facts(
        live=live,
        rules=tuple(rule for at in sorted(rules) for rule in rules[at]),
        noted=frozenset(_noted(rules, said, newest)),
        contents={
            found.pair: telling(found, newest.get(at, ()))
            for at, found in enumerate(live)
            if found.action is not MemoryAction.IGNORE
        },
        known=tuple(each.content for each in (*notes, *(each for listed in places for each in listed)))[:KNOWN],
        hypotheses=_untried(connection, [rows.megram(row) for row in guesses], now_us),
    )


def _untried(connection: Connection, guesses: Sequence[Megram], now_us: int) -> tuple[CalibrationEntry, ...]:
    """Hypotheses about tools that have not failed for this kind of request."""
    live = reading.sums(connection, [guess_about(each.pair) for each in guesses], now_us) if guesses else []
    return tuple(guessed(each) for each, sums in zip(guesses, live, strict=True) if sums.decision >= 0)


def _noted(rules: reading.Placed, said: reading.Placed, newest: reading.Placed) -> Iterator[str]:
    """The rules against which the evidence of now was written down before."""
    for at, listed in rules.items():
        evidence = max((age(each) for each in newest.get(at, ())), default=None)
        for rule in listed:
            against = [age(each) for each in said.get(at, ()) if each.sigma * rule.sigma <= 0]
            if against and (evidence is None or max(against) > evidence):
                yield rule.id
