"""Plan a dream cycle before anything is changed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from artoo.agents.cognition.knowledge_file import LINE, Learnt, merged
from artoo.agents.cognition.observations import asked_in
from artoo.agents.cognition.patterns import Pattern
from artoo.agents.cognition.similarity import one_line
from artoo.contracts.agents import DreamCycleReport
from artoo.contracts.base import Contract
from artoo.contracts.memory import Level, Megram, MegramState, Origin
from artoo.contracts.tags import macro_pair

KEPT = 10
"""Observations that stay in the buffer (SPEC section 11)."""
FADING_DAYS = 30.0
"""Days without being seen after which a pattern is worth about a third."""
_F, _K = 0.3, 0.2


@dataclass(frozen=True, slots=True)
class Promotion:
    """A pattern that has become knowledge, for shared memory. The same `id` again is the same promotion.

    `about`: an observation of it, which begins with what was asked.
    """

    id: str
    agent: str
    text: str
    about: str
    seen: int
    at: datetime


class PendingDream(Contract):
    """The steps that remain once the database has committed: kept there until file and memory have them.

    `base` and `after` are the knowledge file's digests before and after; `lines` serve when it was changed between.
    """

    base: str
    after: str
    text: str
    lines: tuple[Learnt, ...]
    worth: dict[str, float]
    promotions: tuple[Promotion, ...]
    report: DreamCycleReport


def digest(text: str) -> str:
    """Return the digest that tells two versions of the file apart."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def worth(pattern: Pattern, now: datetime) -> float:
    """Return how often a pattern was seen, faded by the time since."""
    days = max(0.0, (now - pattern.last_at).total_seconds() / 86_400)
    return pattern.seen * math.exp(-days / FADING_DAYS)


def planned(
    agent: str,
    patterns: Sequence[Pattern],
    current: str,
    now: datetime,
    *,
    ids: Sequence[str],
    limit: int,
    observations: int,
) -> tuple[tuple[Pattern, ...], PendingDream]:
    """Return the patterns as they will be, and the steps that follow from them. `ids` name the promotions."""
    lines = [
        Learnt(each.id, _line(each), worth(each, now), new=each.ripe)
        for each in patterns
        if each.ripe or each.promoted
    ]
    worths = {line.id: line.worth for line in lines}
    result = merged(current, lines, worths, limit)
    trimmed = frozenset(result.trimmed)
    fresh = [each for each in patterns if each.ripe and each.id not in trimmed]
    report = DreamCycleReport(
        agent=agent,
        at=now,
        observations=observations,
        promoted=tuple(_line(each) for each in fresh),
        trimmed=tuple(line.text for line in lines if line.id in trimmed),
        error=_excess(result.excess, limit),
    )
    pending = PendingDream(
        base=digest(current),
        after=digest(result.text),
        text=result.text,
        lines=tuple(lines),
        worth=worths,
        promotions=tuple(
            Promotion(identifier, agent, _line(each), each.text, each.seen, now)
            for identifier, each in zip(ids, fresh, strict=False)
        ),
        report=report,
    )
    return tuple(_standing(each, trimmed) for each in patterns), pending


def megram_of(promotion: Promotion) -> Megram:
    """Return the K entry of a promotion: context without a verdict (σ = 0), filed under the request.

    Whether something works is M evidence, which the loops have written; counting it twice would be an echo.
    """
    pair = macro_pair(asked_in(promotion.about))
    return Megram(
        id=promotion.id,
        level=Level.KNOWLEDGE,
        created_at=promotion.at,
        space=pair.space,
        entity=pair.entity,
        content=promotion.text,
        state=MegramState.CONSOLIDATED,
        f=_F,
        sigma=0.0,
        k=_K,
        origin=Origin(),
    )


def _standing(pattern: Pattern, trimmed: frozenset[str]) -> Pattern:
    """Return a pattern as it will be. A trimmed one must be seen three times more to come back."""
    if pattern.id in trimmed:
        return replace(pattern, promoted=False, seen=0)
    return replace(pattern, promoted=pattern.promoted or pattern.ripe)


def _line(pattern: Pattern) -> str:
    counted = f" ({pattern.seen} times, last {pattern.last_at:%Y-%m-%d})"
    return one_line(pattern.text, LINE - 2 - len(counted)) + counted


def _excess(characters: int, limit: int) -> str | None:
    if not characters:
        return None
    return (
        f"knowledge.md is {characters} characters longer than the {limit} that are allowed, without anything"
        " learnt in it: shorten it, or raise runtime.memory.semantic.max_curated_chars"
    )
