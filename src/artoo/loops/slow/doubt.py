"""Systematic evaluation bias (v0.8 specification, "the subtle case"): nearer and nearer by a wrong approach.

One round of the paper's cell 6 proves nothing. The same intent again and again says that its criteria reward the
wrong thing, and whoever plans it next is told.
"""

from __future__ import annotations

from artoo.contracts.memory import Level, MegramState, Origin
from artoo.contracts.tags import CELL_6, LOCAL, Pair
from artoo.control.potentials import BIAS
from artoo.loops.lesson import Lesson
from artoo.loops.slow.passing import Pass, changed

INTENTS = 200
ROUNDS = 24
SYSTEMATIC = 3
"""Tasks of one intent, within what is remembered, from which on it is no accident."""
_TOLD = "results looked nearer although the approach was wrong; criteria that code can check would tell"


async def doubt(work: Pass) -> None:
    """Notes each intent whose rounds were suspicious in enough tasks, and again when they have doubled."""
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
