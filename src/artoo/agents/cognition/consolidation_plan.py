"""Plan a dream cycle, with the observations that stay in the buffer, and the days after which knowledge fades.

Nothing is changed before the plan is complete.
"""

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
"""Number of observations that remain in the buffer after a cycle (SPEC section 11)."""
FADING_DAYS = 30.0
"""Number of days after which a pattern that is no longer seen is worth about a third."""
_F, _K = 0.3, 0.2


@dataclass(frozen=True, slots=True)
class Promotion:
    """A pattern that has become knowledge and is written to shared memory. The same `id` always means the same
    promotion.

    `about`: an observation of the pattern. It begins with the request.
    """

    id: str
    agent: str
    text: str
    about: str
    seen: int
    at: datetime


class PendingDream(Contract):
    """The steps that are left to do after the commit. They are stored in the database until the file and shared
    memory are updated.

    `base` and `after` are the digests of the knowledge file before and after the cycle. `lines` are used if the
    file was changed in between.
    """

    base: str
    after: str
    text: str
    lines: tuple[Learnt, ...]
    worth: dict[str, float]
    promotions: tuple[Promotion, ...]
    report: DreamCycleReport


def digest(text: str) -> str:
    """Return a digest of the file's text, by which changes are noticed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def worth(pattern: Pattern, now: datetime) -> float:
    """Return how often a pattern was seen, reduced by the time that has passed since it was last seen."""
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
    """Return the patterns after the cycle, and the steps that are left to do. `ids` provides the ids of
    promotions."""
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
    """Return the megram of level K for a promotion. It is context without a judgement (σ = 0), filed under the
    request.

    Whether an approach works is evidence of level M, which the loops have already written. It must not be counted a
    second time.
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
    """Return a pattern as it is after the cycle. A pattern whose line was removed must be seen three more times
    before it returns."""
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
