"""The Dreamer's steps `forget`, `doubt` and `transfer` over experience (levels M and K), with thresholds.

forget     faded entries are deleted, so that they do not become noise (paper, section 7.1)
doubt      if rounds of an intent came nearer by a wrong approach in several tasks, its evaluation is biased
           (v0.8 specification, "the subtle case")
transfer   a tool that worked for similar intents is guessed for this one (v0.8 specification, Phase 2)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from artoo.contracts.memory import Level, MegramState, Origin
from artoo.contracts.tags import CELL_6, LOCAL, Pair, tool_pair
from artoo.control.potentials import BIAS, FORGET_BELOW, HYPOTHESIS, retention
from artoo.loops.lesson import Lesson
from artoo.loops.slow.passing import EXAMPLES, Pass, changed
from artoo.ports.dream import Fading

INTENTS = 200
DELETED_TOGETHER = 128
ROUNDS = 24
# If an intent has suspicious rounds in at least this many remembered tasks, they are no accident.
SYSTEMATIC = 3
LEAST_SCORE = 0.5
_TOLD = "results looked nearer although the approach was wrong; criteria that code can check would tell"


def faded(entry: Fading) -> bool:
    """Check whether the live magnitude of a single M or K entry is below .1."""
    return entry.f * retention(entry.k, entry.age_days) < FORGET_BELOW


async def forget(work: Pass) -> None:
    """Delete faded entries, slice by slice from where the last pass stopped."""
    limits = work.limits

    async def delete(doomed: list[str]) -> None:
        for start in range(0, len(doomed), DELETED_TOGETHER):
            gone = await work.store.forget(doomed[start : start + DELETED_TOGETHER], faded)
            work.findings.forgotten += len(gone)
            room = max(0, EXAMPLES - len(work.findings.forgotten_examples))
            work.findings.forgotten_examples += [
                changed(megram, f"faded: f = {megram.f:g}, k = {megram.k:g}, {megram.state.value}")
                for megram in gone[:room]
            ]

    fading = work.slices("cursor:forget", limits.records, limits.slice, partial(work.store.fading, select=faded))
    async for slice_ in fading:
        work.findings.examined += slice_.examined
        await delete([entry.megram_id for entry in slice_.found])


async def doubt(work: Pass) -> None:
    """Record each intent with suspicious rounds in enough tasks, and again after their number has doubled."""
    await work.pace()
    for cluster in await work.store.about(CELL_6, INTENTS, ROUNDS):
        tasks = {megram.origin.task_id for megram in cluster.megrams if megram.state is MegramState.SUSPICION}
        mark = f"bias:{cluster.pair.entity}"
        before = await work.store.mark(mark)
        if len(tasks) < max(SYSTEMATIC, 2 * int(before or 0)):
            continue
        content = f"In {len(tasks)} such tasks {_TOLD}"
        pair = Pair(cluster.pair.entity, LOCAL)
        lesson = Lesson(pair, MegramState.CONSOLIDATED, BIAS, content, Level.KNOWLEDGE)
        sources = tuple(megram.id for megram in cluster.megrams)
        note = await work.keep(lesson, Origin(sources=sources), mark, str(len(tasks)))
        work.findings.biases.append(changed(note, f"{len(tasks)} tasks came nearer by a wrong approach"))


async def transfer(work: Pass) -> None:
    """Write the best new guesses, up to the limit of a pass.

    A guess is a hypothesis megram: it is marked, weak and never evidence. It is made only once, and not for a tool
    that was tried for this intent with a negative result.
    """
    await work.pace()
    left = work.limits.hypotheses
    for score, intent, tool in guesses(await work.store.intents(INTENTS)):
        if left == 0:
            return
        mark = f"hypothesis:{intent}|{tool}"
        if await work.store.mark(mark) is not None:
            continue
        known = await work.store.kinds(tool_pair(tool), INTENTS)
        if any(kind.entity == f"intent:{intent}" and kind.decision < 0 for kind in known):
            continue
        told = f"Hypothesis, untested: {tool} may serve {intent}; it served similar intents ({score:.2f})."
        lesson = Lesson(Pair(f"intent:{intent}", f"tool:{tool}"), MegramState.HYPOTHESIS, HYPOTHESIS, told)
        megram = await work.keep(lesson, Origin(hypothesis=True), mark, "made")
        work.findings.hypotheses.append(changed(megram, f"score {score:.2f}"))
        left -= 1


def guesses(worked: Mapping[str, frozenset[str]]) -> list[tuple[float, str, str]]:
    """Guess tools that an intent has not used; return (score in [.5, 1), intent, tool), best first.

    The similarity of two intents is the cosine of the sets of tools that worked for them. A score is the weighted
    vote of the similar intents, with one extra vote for the tool and one against it (rule of succession).
    """
    found: list[tuple[float, str, str]] = []
    for intent, tools in worked.items():
        similar = {
            other: len(tools & theirs) / math.sqrt(len(tools) * len(theirs))
            for other, theirs in worked.items()
            if other != intent and tools & theirs
        }
        total = sum(similar.values())
        for tool in frozenset[str]().union(*(worked[other] for other in similar)) - tools:
            score = (1 + sum(weight for other, weight in similar.items() if tool in worked[other])) / (2 + total)
            if score >= LEAST_SCORE:
                found.append((score, intent, tool))
    return sorted(found, key=lambda guess: (-guess[0], guess[1], guess[2]))
