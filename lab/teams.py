"""Cells in which ten solvers take turns at jobs with a trap: the tool that everybody thinks of first is wrong.

Their memories are LMDB stores, in the lab's virtual time. A team on many machines has one memory in PostgreSQL. Its
potentials are the same after the same operations (tests/memory/test_memory_two_engines.py), so LMDB stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from artoo.memory.service import SharedMemory
from artoo.runtime.task.role_context import TaskMemory
from artoo.testing.ids import SequentialIds
from lab.laws import Arm, Law
from lab.running import run_job
from lab.scratch import scratch
from lab.time import LabClock
from lab.world import PLACES, Job, Part, World, draw, pick

SOLVERS = 10
JOBS = 100
"""Of the whole team, for one trap: ten a solver."""
BETWEEN = 600.0
"""Seconds from the end of a job to the next: ten minutes, so that a hundred jobs take some seventeen hours."""
TRAP = World(parts=1, chained=0.0, big=0.0, hopeless=0.0, broken=0.2, outage=0.05, noise=0.05)


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a team made of one trap.

    `until`: jobs of the whole team before ten in a row, one of each solver, of which none chose the trap first; all
    jobs where that never came. `falls`: jobs whose first choice was the trap. `calls`, `solved`: of all jobs.
    """

    number: int
    until: int
    falls: int
    calls: int
    solved: int


@dataclass(frozen=True, slots=True)
class Team:
    """Implements `experiment.Cell`: each number is a trap. `memories`: how many there are for all solvers."""

    memories: int

    async def run(self, seed: int, numbers: range) -> list[object]:
        """A Learnt for each trap."""
        found: list[object] = []
        for number in numbers:
            with scratch() as place:
                found.append(await self._learn(seed, number, place))
        return found

    async def _learn(self, seed: int, number: int, place: Path) -> Learnt:
        clock, ids = LabClock(), SequentialIds()
        stores = [SharedMemory.open(place / str(each), clock, ids) for each in range(self.memories)]
        fell, calls, solved = list[bool](), 0, 0
        try:
            for at in range(JOBS):
                store = stores[at % SOLVERS % self.memories]
                job = _job(seed, number, at)
                memory = TaskMemory(store, store)
                trace = await run_job(TRAP, job, Arm("the law", Law), seed, ids=ids, memory=memory)
                await store.flush()
                fell.append(trace.first_tools[:1] == job.parts[0].guesses[:1])
                calls, solved = calls + trace.calls, solved + trace.solved
                await clock.sleep(BETWEEN)
        finally:
            for store in stores:
                await store.close()
        return Learnt(number, _known(fell), sum(fell), calls, solved)


def _known(fell: Sequence[bool]) -> int:
    """Jobs before the first ten in a row without a fall."""
    return next((at for at in range(len(fell) - SOLVERS + 1) if not any(fell[at : at + SOLVERS])), len(fell))


def _job(seed: int, number: int, at: int) -> Job:
    """One job of the kind that has the trap. All solvers are the same model: they guess in the same order."""
    key = (seed, "trap", number)
    right = pick(TRAP.names, *key, "right")
    others = sorted((name for name in TRAP.names if name != right), key=lambda name: draw(*key, "order", name))
    rank = 1 + int(draw(*key, "rank") * len(others))
    sound = [draw(*key, at, "sound", each) >= TRAP.broken for each in range(PLACES)]
    if not any(sound):
        sound[0] = True
    part = Part("p1", right, (*others[:rank], right, *others[rank:]), tuple(sound), big=False)
    name = f"t{number}n{at}"
    return Job(at, name, f"match customs forms, {name}", (part,), chained=False)
