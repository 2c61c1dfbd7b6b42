"""Count equal observations as one pattern, with similarity thresholds, the count for promotion, and their limit.

Observations with the same meaning belong to one pattern, even if their wording differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from artoo.agents.cognition.similarity import likeness, words

PROMOTED_AT = 3
"""Number of times a pattern must be seen before it becomes knowledge (SPEC section 11)."""
ASKED_LIKE, WHY_LIKE = 0.75, 0.5
"""Minimum share of common words by which two observations belong to one pattern. The first number is for the
request, the second for the reason."""
MOST_PATTERNS = 500
"""Maximum number of patterns that are counted for one agent. If there are more, those that were seen least often
and longest ago are dropped."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One observation in the buffer. `position` is its place in the order. `counted`: true if an earlier cycle has
    counted it."""

    position: int
    text: str
    pattern: str
    at: datetime
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, and how often it was seen (`seen`). `text`: the newest observation of it. `promoted`: true if it
    has become knowledge."""

    id: str
    pattern: str
    text: str
    seen: int
    first_at: datetime
    last_at: datetime
    promoted: bool = False

    @property
    def ripe(self) -> bool:
        """Return whether the pattern was seen often enough to become knowledge."""
        return self.seen >= PROMOTED_AT and not self.promoted


def counted(known: Sequence[Pattern], fresh: Sequence[Seen]) -> tuple[Pattern, ...]:
    """Count new observations, and return the resulting patterns, at most `MOST_PATTERNS`."""
    tally = _Tally(known)
    for seen in fresh:
        tally.add(seen)
    patterns = sorted(tally.patterns.values(), key=lambda each: (each.promoted, each.seen, each.last_at))
    return tuple(patterns[-MOST_PATTERNS:])


class _Tally:
    """Finds the pattern to which an observation belongs. It has the same text, or else it is the most similar one
    with the same ending."""

    def __init__(self, known: Sequence[Pattern]) -> None:
        self.patterns = {each.id: each for each in known}
        self._exact = {each.pattern: each.id for each in known}
        self._words = {each.id: _words(each.pattern) for each in known}

    def add(self, seen: Seen) -> None:
        # Equal texts are the usual case, for which no comparison with all patterns is needed.
        found = self._exact.get(seen.pattern) or self._alike(seen.pattern)
        if found is None:
            found = hashlib.sha256(seen.pattern.encode("utf-8", "surrogatepass")).hexdigest()[:12]
            self.patterns[found] = Pattern(found, seen.pattern, seen.text, 0, seen.at, seen.at)
            self._words[found] = _words(seen.pattern)
        self._exact[seen.pattern] = found
        before = self.patterns[found]
        self.patterns[found] = replace(
            before,
            text=seen.text,
            seen=before.seen + 1,
            first_at=min(before.first_at, seen.at),
            last_at=max(before.last_at, seen.at),
        )

    def _alike(self, pattern: str) -> str | None:
        said = _words(pattern)
        alike = ((_likeness(said, other), key) for key, other in self._words.items())
        best, key = max(alike, default=(0.0, ""))
        return key if best > 0 else None


@dataclass(frozen=True, slots=True)
class _Said:
    ending: str
    asked: frozenset[str]
    why: frozenset[str]


def _words(pattern: str) -> _Said:
    ending, asked, why = (*pattern.split("|", 2), "", "")[:3]
    return _Said(ending, words(asked), words(why))


def _likeness(one: _Said, other: _Said) -> float:
    """Return the similarity of two observations, from 0 to 1. The similarity is 0 if their endings or reasons
    differ."""
    if one.ending != other.ending:
        return 0.0
    asked = likeness(one.asked, other.asked)
    same_reason = one.why == other.why or likeness(one.why, other.why) >= WHY_LIKE
    return asked if asked >= ASKED_LIKE and same_reason else 0.0
