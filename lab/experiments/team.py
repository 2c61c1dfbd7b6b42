"""Group 2, many machines: ten solvers with one memory against ten with their own, at jobs with a trap.

The trap: the tool that everybody thinks of first is wrong. The stores are embedded ones, in virtual time. A team on
many machines has one in PostgreSQL, whose potentials are the same (tests/memory/test_memory_two_engines.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from artoo.memory.service import SharedMemory
from artoo.runtime.task.role_context import TaskMemory
from artoo.testing.ids import SequentialIds
from lab.experiment import Claim, Experiment, Finding, Outcome, Rows, Table
from lab.laws import Arm, Law
from lab.lives import scratch
from lab.running import run_job
from lab.statistics import Estimate, bootstrap, difference
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
    """The result of a team for one trap.

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
    """The implementation of `experiment.Cell` in which each number is a trap.

    `memories`: how many there are for all solvers.
    """

    memories: int

    async def run(self, seed: int, numbers: range) -> list[object]:
        """Return a Learnt for each trap."""
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
    """Return the jobs before the first ten in a row without a fall."""
    return next((at for at in range(len(fell) - SOLVERS + 1) if not any(fell[at : at + SOLVERS])), len(fell))


def _job(seed: int, number: int, at: int) -> Job:
    """Run one job of the kind that has the trap. All solvers are the same model: they guess in the same order."""
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


ONE, OWN = "one memory", "a memory each"
MOST_SHARE = 0.25

KNOWN = Claim(
    "Ten solvers with one memory know a trap after at most a quarter of the tasks that ten with their own need.",
    "the interval of the ratio is not all below 0.25",
    "withdrawn as it stood: no document says a quarter; what is said of one memory is the ratio that was seen.",
)
FALLS = Claim(
    "They fall into it at most a quarter as often.",
    "the interval of the ratio is not all below 0.25",
)
SOLVED = Claim(
    "One memory costs nothing: as much is solved, with no more calls.",
    "significantly less is solved, or significantly more calls are made",
)


def cells() -> Mapping[str, Team]:
    """Return both teams, with the same traps and jobs."""
    return {ONE: Team(1), OWN: Team(SOLVERS)}


def judge(rows: Rows) -> Outcome:
    """Judge by trap: jobs of one trap depend on each other, so traps are what is drawn again."""
    one, own = (cast("Sequence[Learnt]", rows[name]) for name in (ONE, OWN))
    until = _ratio([each.until for each in one], [each.until for each in own])
    falls = _ratio([each.falls for each in one], [each.falls for each in own])
    solved = difference([100 * each.solved / JOBS for each in one], [100 * each.solved / JOBS for each in own])
    calls = difference([each.calls / JOBS for each in one], [each.calls / JOBS for each in own])
    findings = (
        Finding(KNOWN, until.high < MOST_SHARE, f"ratio {until.text(2)}"),
        Finding(FALLS, falls.high < MOST_SHARE, f"ratio {falls.text(2)}"),
        Finding(
            SOLVED,
            not (solved.below or calls.above),
            f"solved {solved.text(1)} points, {calls.text(2)} calls a job",
        ),
    )
    note = (
        f"{len(one)} traps, {JOBS} jobs each, of {SOLVERS} solvers in turns. Until known: jobs of the "
        "whole team before ten in a row, one of each solver, of which none chose the trap first."
    )
    columns = ("team", "jobs until known", "falls", "calls a job", "solved, %")
    table = Table("A trap and a team", columns, (_line(ONE, one), _line(OWN, own)), note)
    return Outcome(findings, (table,))


def _ratio(ours: Sequence[int], theirs: Sequence[int]) -> Estimate:
    return bootstrap(
        len(ours), lambda at: sum(ours[each] for each in at) / max(1, sum(theirs[each] for each in at))
    )


def _line(name: str, found: Sequence[Learnt]) -> tuple[str, ...]:
    count = len(found)
    return (
        name,
        f"{sum(each.until for each in found) / count:.1f}",
        f"{sum(each.falls for each in found) / count:.1f}",
        f"{sum(each.calls for each in found) / (count * JOBS):.2f}",
        f"{100 * sum(each.solved for each in found) / (count * JOBS):.1f}",
    )


EXPERIMENT = Experiment(
    name="team",
    title="Ten solvers, one memory",
    question="How many tasks does a team need until it knows a trap, with one memory and with one each?",
    claims=(KNOWN, FALLS, SOLVED),
    cells=cells,
    judge=judge,
    unit="traps",
    tasks=4,
    piece=1,
    real="bus and routes, all roles, R7's lessons, calibration; SQLite, of which one stands for PostgreSQL's",
    simulated="models, tools, the person, time, machines; the Dreamer does not run",
)
