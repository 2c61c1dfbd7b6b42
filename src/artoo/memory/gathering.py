"""Everything that calibration needs to know, in one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from artoo.contracts.memory import CalibrationEntry, Megram, MemoryAction, Potentials
from artoo.contracts.tags import Pair
from artoo.memory import keys, reading
from artoo.memory.environment import Transaction

RULES = 10
RECENT = 5
KNOWN = 10
NOTES = 3
HYPOTHESES = 3


@dataclass(frozen=True, slots=True)
class Facts:
    """Potentials and rules of the pairs asked for, what their newest entries say, places, guesses.

    `noted`: the rules against which the evidence of now was written down before.
    """

    live: tuple[Potentials, ...]
    rules: tuple[Megram, ...]
    noted: frozenset[str]
    contents: dict[Pair, str]
    known: tuple[str, ...]
    hypotheses: tuple[CalibrationEntry, ...]


def gather(transaction: Transaction, macro: Pair, asked: Sequence[Pair], now_us: int) -> Facts:
    """Reads the facts for planning one intent. `thing:` pairs give places, the others advice."""
    things = [pair for pair in asked if pair.space.startswith("thing:")]
    others = [pair for pair in asked if not pair.space.startswith("thing:")]
    live = tuple(reading.potentials(transaction, pair, now_us) for pair in others)
    rules = tuple(rule for pair in others for rule in reading.rules(transaction, pair, RULES))
    return Facts(
        live=live,
        rules=rules,
        noted=frozenset(rule.id for rule in rules if reading.spoken_against(transaction, rule)),
        contents={
            found.pair: telling(found, reading.newest(transaction, keys.pair_part(found.pair), RECENT))
            for found in live
            if found.action is not MemoryAction.IGNORE
        },
        known=(*_notes(transaction, macro), *_places(transaction, things, now_us))[:KNOWN],
        hypotheses=tuple(
            guessed(each)
            for each in reading.hypotheses(transaction, macro, HYPOTHESES)
            if reading.potentials(transaction, guess_about(each.pair), now_us).decision >= 0
        ),
    )


def guess_about(pair: Pair) -> Pair:
    """The pair under which it is kept how a guessed tool did for this kind of request."""
    return Pair(pair.entity, pair.space)


def guessed(megram: Megram) -> CalibrationEntry:
    """A hypothesis as advice."""
    return CalibrationEntry(space=megram.space, entity=megram.entity, content=megram.content)


def telling(found: Potentials, newest: Sequence[Megram]) -> str:
    """What the newest entry says that speaks as the sums do: what went well where it is recommended, else what did
    not. Empty when none of these does: a warning that quotes a success contradicts itself.
    """
    side = 1 if found.action is MemoryAction.EXPLOIT else -1
    return next((each.content for each in newest if each.sigma * side > 0), "")


def _notes(transaction: Transaction, macro: Pair) -> list[str]:
    """What the slow loops have learnt about the intent without a verdict: context, newest first."""
    entries = reading.known(transaction, macro, KNOWN)
    return [entry.content for entry in entries if entry.sigma == 0][:NOTES]


def _places(transaction: Transaction, things: Sequence[Pair], now_us: int) -> list[str]:
    """Where named things were found, as far as that proved right since."""
    return [
        entry.content
        for pair in things
        if reading.potentials(transaction, pair, now_us).decision > 0
        for entry in reading.known(transaction, pair, KNOWN)
    ]
