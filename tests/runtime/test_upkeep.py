"""Memory's own model calls: on a budget of their own, with prices, in an account that all processes share."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from artoo import Artoo
from artoo.agents.cognition.store import Session
from artoo.agents.identity.folders import AgentFolder
from artoo.agents.storage.database import open_file
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted
from artoo.contracts.events import ModelCalled
from artoo.contracts.memory import MemoryWritten
from artoo.contracts.solution import Directive, FinalResult
from artoo.ports.model import Question, Tier
from artoo.runtime.config.model import Config
from artoo.runtime.config.seed_config import AgentMemory
from artoo.runtime.task.background_budget import UpkeepModel, spent_on, upkeep_model
from artoo.team.minds import Minds
from artoo.testing import FakeClock, ScriptedModel, SequentialIds


class Said(BaseModel):
    """What is asked for."""

    word: str


QUESTION = Question(contract="Said", schema=Said, system="contract: Said", user="?", tier=Tier.BRAIN)
SCRIPT = {"Said": [{"word": "a"}, {"word": "b"}, {"word": "c"}]}


def config(home: Path, **memory: object) -> Config:
    prices = {"currency": "EUR", "models": {"scripted": {"prompt": 1_000_000, "completion": 1_000_000}}}
    return Config.model_validate({"memory": memory, "prices": prices}).at_home(home)


def model(home: Path, clock: FakeClock, **memory: object) -> UpkeepModel:
    return upkeep_model(ScriptedModel(SCRIPT, leftover=True), config(home, **memory), {}, clock, given_model=True)


async def test_a_days_calls_are_bounded_across_processes(tmp_path: Path) -> None:
    """The second process finds what the first has spent; the error names the setting; a new day is a new budget."""
    clock = FakeClock()
    await model(tmp_path, clock, calls=2).ask(QUESTION)
    again = model(tmp_path, clock, calls=2)
    await again.ask(QUESTION)
    with pytest.raises(BudgetExhausted, match=re.escape("memory.calls in the configuration")):
        await again.ask(QUESTION)
    assert spent_on(tmp_path, clock.now().date()).llm_calls == 2
    clock.advance(timedelta(days=1).total_seconds())
    assert await again.ask(QUESTION)
    assert spent_on(tmp_path, clock.now().date()).llm_calls == 1


async def test_a_dream_cycle_is_seen_and_reaches_planners(tmp_path: Path) -> None:
    """What an agent saw three times stands on the stream as the Dreamer's, asks no model, and is among what a
    planner of the same request is told; it is no verdict.
    """
    clock, heard = FakeClock(), list[Envelope]()
    place = tmp_path / "agents" / "ada" / "identity.yaml"
    place.parent.mkdir(parents=True)
    async with (
        Artoo(config(tmp_path), environ={}, model=ScriptedModel({}), clock=clock) as artoo,
        await open_file(tmp_path / "a.db", clock) as database,
    ):
        artoo.bus.attach(heard.append)
        minds = Minds(database, artoo, clock, SequentialIds(), AgentMemory(), small_model=False)
        minds.enter(AgentFolder("ada", place, place))
        done = FinalResult(task_id="t", summary="s", directive=Directive.ACCEPT)
        for number in range(3):
            await minds.remember("ada", Session(str(number), "task", "s"), "read the log", done)
        report = await minds.dream_cycle("ada").run()
        assert (report.llm_calls, report.error) == (0, None)
        memory = await artoo.memory()
        assert memory is not None
        told = [one.payload for one in heard if isinstance(one.payload, MemoryWritten)]
        assert [(one.level, one.sigma) for one in told] == [("K", 0.0)]
        found = await memory.recall.calibrate("Read the log")
        assert any("read the log" in line for line in found.known)
        assert (found.should_prefer, found.must_not) == ((), ())
    assert not [one for one in heard if isinstance(one.payload, ModelCalled)]
