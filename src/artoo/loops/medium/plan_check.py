"""The plan validator: reasons why a plan must not run, in words that the planner can act on."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from artoo.contracts.plan import MustNot, PlannedSubTask
from artoo.loops.medium.advice import mentions

_WORD = re.compile(r"\w+")
NEARLY_SAME = 0.9
"""Jaccard similarity of the words of two plans with the same tools from which they count as the same plan."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A plan for comparison with later ones: its tools in order, which of its parts follow which, and all words of
    its intents.
    """

    tools: tuple[str | None, ...]
    order: tuple[int, ...]
    words: frozenset[str]

    def similarity(self, other: Fingerprint) -> float:
        """Jaccard similarity of the words, in [0, 1]."""
        both = self.words | other.words
        return len(self.words & other.words) / len(both) if both else 1.0

    def is_nearly(self, other: Fingerprint) -> bool:
        """Whether it is the same plan in slightly other words. With another tool it is another plan: in a long
        intent that is one word of many. So it is with its parts in another order, which may be all that was wrong.
        """
        return (self.tools, self.order) == (other.tools, other.order) and self.similarity(other) >= NEARLY_SAME


def objections(
    subtasks: Sequence[PlannedSubTask], forbidden: MustNot, tried: Collection[Fingerprint] = ()
) -> list[str]:
    """Return all objections to a plan, none when it may run. `tried`: plans that this one must differ from.

    A tool that there is not and too many subtasks do not come so far: the schema has neither. A plan without
    criteria is held to the request.
    """
    found = list[str]()
    for number, subtask in enumerate(subtasks, 1):
        if subtask.tool in forbidden.tools:
            found.append(f"subtask {number} uses {subtask.tool}, which must not be used")
        for identity, target in forbidden.targets:
            used = target and subtask.tool in (identity, identity.partition(":")[0])
            if used and (target in mentions(subtask.intent) or _mentions(subtask.intent, target)):
                found.append(f"subtask {number} uses {target!r} with {identity}, which failed before")
    if tried and any(map(fingerprint(subtasks).is_nearly, tried)):
        found.append("the plan is nearly the same as one that failed; use another kind of tool or another method")
    return found


def fingerprint(subtasks: Sequence[PlannedSubTask]) -> Fingerprint:
    """Of a plan as it was drafted."""
    words = (word for each in subtasks for word in _WORD.findall(each.intent.casefold()))
    groups = sorted({each.sequence for each in subtasks})
    order = tuple(groups.index(each.sequence) for each in subtasks)
    return Fingerprint(tuple(each.tool for each in subtasks), order, frozenset(words))


def _mentions(text: str, target: str) -> bool:
    """A whole-name mention: `a.txt` is not mentioned by `data.txt`."""
    pattern = rf"(?<![\w./-]){re.escape(target)}(?![\w/-]|\.\w)"
    return re.search(pattern, text) is not None
