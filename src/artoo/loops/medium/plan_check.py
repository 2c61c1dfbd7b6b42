"""The plan validator: reasons why a plan must not run, in words that the planner can act on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from artoo.contracts.plan import MustNot, PlannedSubTask

_WORD = re.compile(r"\w+")
NEARLY_SAME = 0.9
"""Jaccard similarity of the words of two plans with the same tools from which they count as the same plan."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A plan for comparison with later ones: its tools in order, and all words of its intents."""

    tools: tuple[str | None, ...]
    words: frozenset[str]

    def similarity(self, other: Fingerprint) -> float:
        """Jaccard similarity of the words, in [0, 1]."""
        both = self.words | other.words
        return len(self.words & other.words) / len(both) if both else 1.0

    def is_nearly(self, other: Fingerprint) -> bool:
        """Whether it is the same plan in slightly other words. With another tool it is another plan: in a long
        intent that is one word of many.
        """
        return self.tools == other.tools and self.similarity(other) >= NEARLY_SAME


@dataclass(frozen=True, slots=True)
class PlanRules:
    """What a plan is held against: tools that exist, prohibitions, plans already tried, and the limit."""

    tools: tuple[str, ...]
    must_not: MustNot
    tried: tuple[Fingerprint, ...] = ()
    most_subtasks: int = 8


def objections(subtasks: Sequence[PlannedSubTask], task_criteria: Sequence[object], rules: PlanRules) -> list[str]:
    """All objections to a plan, none when it may run."""
    found = list(_objections(subtasks, task_criteria, rules))
    if any(map(fingerprint(subtasks).is_nearly, rules.tried)):
        found.append("the plan is nearly the same as one that failed; use another kind of tool or another method")
    return found


def fingerprint(subtasks: Sequence[PlannedSubTask]) -> Fingerprint:
    """Of a plan as it was drafted."""
    words = (word for each in subtasks for word in _WORD.findall(each.intent.casefold()))
    return Fingerprint(tuple(each.tool for each in subtasks), frozenset(words))


def _objections(
    subtasks: Sequence[PlannedSubTask], task_criteria: Sequence[object], rules: PlanRules
) -> Iterator[str]:
    if not subtasks:
        yield "the plan has no subtasks"
        return
    if len(subtasks) > rules.most_subtasks:
        yield f"the plan has {len(subtasks)} subtasks; at most {rules.most_subtasks} are allowed"
    if not task_criteria:
        yield "the plan has no task_criteria; say how one can tell that the request is fulfilled"
    for number, subtask in enumerate(subtasks, 1):
        yield from _objections_to(number, subtask, rules)


def _objections_to(number: int, subtask: PlannedSubTask, rules: PlanRules) -> Iterator[str]:
    if subtask.tool is not None and subtask.tool not in rules.tools:
        yield f"subtask {number} names the tool {subtask.tool!r}; there are: {', '.join(rules.tools)}"
    if subtask.tool is not None and subtask.tool in rules.must_not.tools:
        yield f"subtask {number} uses {subtask.tool!r}, which must not be used now"
    for identity, target in rules.must_not.targets:
        if target and subtask.tool in (identity, identity.partition(":")[0]) and _mentions(subtask.intent, target):
            yield f"subtask {number} uses {target!r} with {identity}, which failed before"


def _mentions(text: str, target: str) -> bool:
    """A whole-name mention: `a.txt` is not mentioned by `data.txt`."""
    pattern = rf"(?<![\w./-]){re.escape(target)}(?![\w/-]|\.\w)"
    return re.search(pattern, text) is not None
