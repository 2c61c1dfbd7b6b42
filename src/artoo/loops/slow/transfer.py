"""Schema transfer (v0.8 specification, Phase 2): a tool that served similar intents is guessed for this one.

What worked is a table of intents by tools. Two intents are as similar as the tools that served both (cosine of
their rows). A tool's score for an intent that never used it is the similarity-weighted vote of those that did, with
one more for it and one against (rule of succession): one vote alone is no certainty. A guess is a hypothesis
megram: marked, weak, never evidence, made once, and never of a tool that failed for this intent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from artoo.contracts.memory import MegramState, Origin
from artoo.contracts.tags import Pair, tool_pair
from artoo.control.potentials import HYPOTHESIS
from artoo.loops.lesson import Lesson
from artoo.loops.slow.passing import Pass, changed

INTENTS = 200
LEAST_SCORE = 0.5


async def transfer(work: Pass) -> None:
    """Writes the best new guesses, as many as one pass may."""
    await work.pace()
    left = work.limits.hypotheses
    for score, intent, tool in guesses(await work.store.intents(INTENTS)):
        if left == 0:
            return
        mark = f"hypothesis:{intent}|{tool}"
        if await work.store.mark(mark) is not None or await _failed(work, intent, tool):
            continue
        told = f"Hypothesis, untested: {tool} may serve {intent}; it served similar intents ({score:.2f})."
        lesson = Lesson(Pair(f"intent:{intent}", f"tool:{tool}"), MegramState.HYPOTHESIS, HYPOTHESIS, told)
        megram = await work.keep(lesson, Origin(hypothesis=True), mark, "made")
        work.findings.hypotheses.append(changed(megram, f"score {score:.2f}"))
        left -= 1


async def _failed(work: Pass, intent: str, tool: str) -> bool:
    """Whether the tool was tried for this kind of request and was worse than nothing."""
    known = await work.store.kinds(tool_pair(tool), INTENTS)
    return any(kind.entity == f"intent:{intent}" and kind.decision < 0 for kind in known)


def guesses(worked: Mapping[str, frozenset[str]]) -> list[tuple[float, str, str]]:
    """(score in [.5, 1), intent, tool) for tools that an intent has not used, best first."""
    found: list[tuple[float, str, str]] = []
    for intent, tools in worked.items():
        similar = {
            other: _similarity(tools, theirs)
            for other, theirs in worked.items()
            if other != intent and tools & theirs
        }
        total = sum(similar.values())
        for tool in frozenset[str]().union(*(worked[other] for other in similar)) - tools:
            score = (1 + sum(weight for other, weight in similar.items() if tool in worked[other])) / (2 + total)
            if score >= LEAST_SCORE:
                found.append((score, intent, tool))
    return sorted(found, key=lambda guess: (-guess[0], guess[1], guess[2]))


def _similarity(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / math.sqrt(len(one) * len(other))
