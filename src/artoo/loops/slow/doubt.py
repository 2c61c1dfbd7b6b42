"""Systematic evaluation bias (v0.8 specification, "the subtle case"): nearer and nearer by a wrong approach.

One round of the paper's cell 6 proves nothing. The same intent again and again says that its criteria reward the
wrong thing, and whoever plans it next is told.
"""

from __future__ import annotations

from artoo.contracts.memory import Level, Megram, MegramState, Origin
from artoo.contracts.tags import CELL_6, LOCAL, Pair
from artoo.control.potentials import BIAS
from artoo.loops.slow.passing import Pass, changed
from artoo.ports.dream import Cluster

INTENTS = 200
ROUNDS = 24
SYSTEMATIC = 3
"""Tasks of one intent, within what is remembered, from which on it is no accident."""


async def doubt(work: Pass) -> None:
    """Notes each intent whose rounds were suspicious in enough tasks, and again when they have doubled."""
    await work.pace()
    for cluster in await work.store.about(CELL_6, INTENTS, ROUNDS):
        tasks = {megram.origin.task_id for megram in cluster.megrams if megram.state is MegramState.SUSPICION}
        mark = f"bias:{cluster.pair.entity}"
        before = await work.store.mark(mark)
        if len(tasks) < max(SYSTEMATIC, 2 * int(before or 0)):
            continue
        note = _note(work, cluster, len(tasks))
        await work.store.store(note, mark, str(len(tasks)))
        work.wrote(note)
        work.findings.biases.append(changed(note, f"{len(tasks)} tasks came nearer by a wrong approach"))


def _note(work: Pass, cluster: Cluster, tasks: int) -> Megram:
    pair = Pair(cluster.pair.entity, LOCAL)
    return Megram(
        id=work.ids.new(),
        level=Level.KNOWLEDGE,
        created_at=work.clock.now(),
        space=pair.space,
        entity=pair.entity,
        content=f"In {tasks} such tasks results looked nearer although the approach was wrong; criteria that code"
        " can check would tell",
        state=MegramState.CONSOLIDATED,
        f=BIAS.f,
        sigma=BIAS.sigma,
        k=BIAS.k,
        origin=Origin(sources=tuple(megram.id for megram in cluster.megrams)),
    )
