"""Group 5, second half: what `artoo config tune` proposes from logs, where it is known what would be better."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from artoo.contracts.envelope import Envelope
from artoo.control.hyperparameters import Hyperparameters
from artoo.runtime.tuning.proposing import Proposed, decisions, others, proposals
from artoo.runtime.tuning.records import EndedTask, record_of
from lab.experiment import Claim, Experiment, Finding, Outcome, Rows, Table
from lab.laws import DEFAULTS, Arm, Law
from lab.running import run_job
from lab.world import CALM, FAULTY, World, job_of

WORTH = 100.0
"""Calls that all criteria of a job are worth, as in an unchanged configuration."""
PEOPLE = 60
"""Persons a world; each has drawn their logs from the world's jobs, so that persons share some."""
LOGS = 120
"""Tasks in a person's logs."""

Number = tuple[str, float | int]

FALSE = Claim(
    "A proposal that would not help is rare: at most one person in twenty gets one.",
    "in some world more than 5 % of the persons get a proposal whose true gain is not above 0",
)
FOUND = Claim(
    "Where another number is better by 3 calls a task or more, half of the persons get a proposal that helps.",
    "in some such world less than half do",
)
HONEST = Claim(
    "A proposal's interval holds the true gain in nine cases of ten.",
    "of all proposals together it does in less than 90 %",
)


@dataclass(frozen=True, slots=True)
class Scene:
    """A world, the numbers in effect, and those under which every second task was run instead."""

    world: World
    present: Hyperparameters
    sometimes: Hyperparameters


SCENES: Mapping[str, Scene] = {
    "calm, δ = .3, half strict": Scene(CALM, DEFAULTS, replace(DEFAULTS, delta=0.0)),
    "calm, δ = 0": Scene(CALM, replace(DEFAULTS, delta=0.0), replace(DEFAULTS, delta=0.0)),
    "faulty, ε = 0, half ε = .1": Scene(FAULTY, replace(DEFAULTS, epsilon=0.0), DEFAULTS),
    "faulty, as it is": Scene(FAULTY, DEFAULTS, DEFAULTS),
    "nothing can be done": Scene(World(hopeless=1.0, parts=1), DEFAULTS, DEFAULTS),
}


@dataclass(frozen=True, slots=True)
class Job:
    """A job under the present numbers, under the others, and under every number that could be proposed."""

    present: EndedTask
    sometimes: EndedTask
    under: Mapping[Number, EndedTask]


@dataclass(frozen=True, slots=True)
class Jobs:
    """The implementation of `experiment.Cell`."""

    scene: Scene

    async def run(self, seed: int, numbers: range) -> list[object]:
        """Return a Job for each."""
        return [await self._job(seed, number) for number in numbers]

    async def _job(self, seed: int, number: int) -> Job:
        """Run a job, unless its numbers decide at each step as was decided: then it goes as it went."""
        scene, known = self.scene, dict[Hyperparameters, EndedTask]()

        async def under(h: Hyperparameters) -> EndedTask:
            for other, record in known.items():
                if decisions(record, h) == decisions(record, other):
                    return record
            known[h] = await self._record(seed, number, h)
            return known[h]

        present, sometimes = await under(scene.present), await under(scene.sometimes)
        return Job(present, sometimes, {(name, value): await under(h) for name, value, h in others(scene.present)})

    async def _record(self, seed: int, number: int, h: Hyperparameters) -> EndedTask:
        stream = list[Envelope]()
        await run_job(
            self.scene.world,
            job_of(self.scene.world, seed, number),
            Arm("tuned", Law, h),
            seed,
            heard=stream.append,
        )
        found = record_of(stream)
        assert isinstance(found, EndedTask), f"a job of the lab {found}"
        return found


@dataclass(frozen=True, slots=True)
class _World:
    """The results of a world: the best number, and what persons were told."""

    best: tuple[float, Number]
    people: int
    proposed: Sequence[tuple[Proposed, float]]

    @property
    def helpful(self) -> int:
        """Return the persons with a proposal that helps."""
        return sum(gain > 0 for _, gain in self.proposed)

    @property
    def false(self) -> int:
        """Return the persons with a proposal that does not help."""
        return len(self.proposed) - self.helpful

    @property
    def held(self) -> int:
        """Return the proposals whose interval holds the true gain."""
        return sum(each.gain[1] <= gain <= each.gain[2] for each, gain in self.proposed)


def judge(rows: Rows) -> Outcome:
    """Judge each person's proposals against what every number truly does to the world's jobs."""
    found = {name: _world(scene, cast("list[Job]", list(rows[name]))) for name, scene in SCENES.items()}
    total, held = sum(len(each.proposed) for each in found.values()), sum(each.held for each in found.values())
    worth = {name: each for name, each in found.items() if each.best[0] >= 3}
    findings = (
        Finding(
            FALSE,
            all(each.false <= 0.05 * each.people for each in found.values()),
            "; ".join(f"{name}: {each.false} of {each.people}" for name, each in found.items()),
        ),
        Finding(
            FOUND,
            all(each.helpful >= 0.5 * each.people for each in worth.values()),
            "; ".join(f"{name}: {each.helpful} of {each.people}" for name, each in worth.items())
            or "no such world",
        ),
        Finding(HONEST, held >= 0.9 * total, f"{held} of {total}"),
    )
    columns = (
        "world, and what is in effect",
        "best change",
        "its true gain, calls a task",
        "helpful",
        "false",
        "proposed",
    )
    table = Table(
        f"What {LOGS} tasks told {PEOPLE} persons",
        columns,
        tuple(_line(name, each) for name, each in found.items()),
        "The gain counts criteria met at what they are worth (100 calls a task), less calls.",
    )
    return Outcome(findings, (table,))


def _world(scene: Scene, jobs: Sequence[Job]) -> _World:
    true = {number: _gain(jobs, number) for number in jobs[0].under}
    chance, size = random.Random(1), min(LOGS, len(jobs))
    proposed = list[tuple[Proposed, float]]()
    for person in range(PEOPLE):
        own = chance.sample(jobs, size)
        logs = [job.sometimes if at % 4 >= 2 else job.present for at, job in enumerate(own)]
        (said,) = proposals(logs, lambda _: scene.present, WORTH, seed=person)
        if said.proposed is not None:
            proposed.append((said.proposed, true[said.proposed.name, said.proposed.value]))
    best = max((gain, number) for number, gain in true.items())
    return _World(best, PEOPLE, proposed)


def _gain(jobs: Sequence[Job], number: Number) -> float:
    return sum(_worth(job.under[number]) - _worth(job.present) for job in jobs) / len(jobs)


def _worth(record: EndedTask) -> float:
    return WORTH * record.steps[-1].met - record.steps[-1].calls


def _line(name: str, found: _World) -> tuple[str, ...]:
    gain, (number, value) = found.best
    told = dict[str, int]()
    for each, _ in found.proposed:
        what = f"{each.name.rstrip('_')} = {each.value:g}"
        told[what] = told.get(what, 0) + 1
    most = ", ".join(f"{what} ({count})" for what, count in sorted(told.items(), key=lambda item: -item[1])[:4])
    best = f"{number.rstrip('_')} = {value:g}"
    return name, best, f"{gain:.2f}", f"{found.helpful}", f"{found.false}", most or "nothing"


EXPERIMENT = Experiment(
    name="tuning",
    title="What `artoo config tune` proposes",
    question="Do proposals from a person's logs help, and how often is one wrong?",
    claims=(FALSE, FOUND, HONEST),
    cells=lambda: {name: Jobs(scene) for name, scene in SCENES.items()},
    judge=judge,
    tasks=80,
    piece=40,
    real="all that `artoo config tune` does with a log; bus and routes, R1 to R4b, the dispatcher, R7 with its law",
    simulated="models, tools, the person, time; persons share jobs",
)
