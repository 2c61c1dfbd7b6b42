"""`artoo config tune` on logs whose truth is known: it finds what is better, and proposes nothing else."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from artoo.contracts.envelope import Envelope
from artoo.control.hyperparameters import Hyperparameters
from artoo.runtime.tuning.proposing import TypeProposal, proposals
from artoo.runtime.tuning.records import EndedTask, record_of
from lab.conducting import Order, conduct
from lab.experiments.tuning import EXPERIMENT, WORTH
from lab.laws import Arm, Law
from lab.running import run_job
from lab.time import VirtualLoop
from lab.world import World, job_of

H = Hyperparameters()
RESTLESS = replace(H, epsilon=0.0)
"""Never sees a plateau: never looks elsewhere when a place is broken."""


def logs(world: World, settings: Sequence[Hyperparameters], count: int) -> list[EndedTask]:
    """Jobs of a world as records, under these settings in turn (two jobs each, so that both halves have all)."""

    async def run() -> list[EndedTask]:
        found = list[EndedTask]()
        for number in range(count):
            stream = list[Envelope]()
            h = settings[number // 2 % len(settings)]
            await run_job(world, job_of(world, 5, number), Arm("law", Law, h), 5, heard=stream.append)
            record = record_of(stream)
            assert isinstance(record, EndedTask), record
            found.append(record)
        return found

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())


def said(records: Sequence[EndedTask], present: Hyperparameters, seed: int = 0) -> TypeProposal:
    """What is said about the one type of task that there is."""
    (found,) = proposals(records, lambda _: present, WORTH, seed=seed)
    return found


def test_stopping_earlier_is_found_without_any_other_log() -> None:
    """Where nothing can be done, a lower θ saves calls and loses nothing: known exactly, from the record alone."""
    found = said(logs(World(parts=1, hopeless=1.0), [H], 60), H).proposed
    assert found is not None and found.name in ("theta", "kill_after")
    assert found.met[0] == 0.0 and found.calls[1] == found.calls[2] < 0


def test_logs_of_one_setting_do_not_tell_of_another() -> None:
    """All went on with ε = 0: what a change of path would have brought, nobody knows, and that is said."""
    world = World(parts=1, hopeless=0.0, big=0.0, foresight=1.0, skill=1.0, broken=0.7, wander=0.0)
    found = said(logs(world, [RESTLESS], 50), RESTLESS)
    assert found.proposed is None or found.proposed.name != "epsilon"
    assert "epsilon" in found.silent


@pytest.mark.torture
def test_what_makes_no_difference_is_not_proposed() -> None:
    """Where R2 is deaf to directives ε decides nothing: at most one person in twenty is told otherwise."""
    deaf = World(parts=1, hopeless=0.0, heed=0.0, broken=0.3)
    pool, chance = logs(deaf, [RESTLESS, H], 160), random.Random(3)
    people = [said(chance.sample(pool, 80), H, seed).proposed for seed in range(20)]
    false = [each for each in people if each is not None and each.name in ("epsilon", "alpha", "beta", "lambda_")]
    assert len(false) <= 1


def test_where_everything_is_met_at_once_no_number_matters() -> None:
    """And a handful of tasks is too few to say anything."""
    world = World(parts=1, hopeless=0.0, big=0.0, foresight=1.0, skill=1.0)
    records = logs(world, [H], 40)
    assert said(records, H) == TypeProposal(records[0].type, 40, why="no other number decides otherwise")
    few = said(records[:39], H)
    assert (few.enough, few.proposed) == (False, None)


@pytest.mark.torture
def test_the_experiment_judges_itself() -> None:
    """Every claim has its finding, from a handful of jobs."""
    ran = conduct(Order("tuning", tasks=44), told=lambda _: None)
    assert tuple(each.claim for each in ran.outcome.findings) == EXPERIMENT.claims
