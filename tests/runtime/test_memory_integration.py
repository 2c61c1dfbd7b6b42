"""Shared memory in the runtime: one store, a Dreamer beside it, a T layer that only the operator changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from artoo import Artoo, Config, RunOptions
from artoo.bus.inprocess import InProcessBus
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError, MemoryStoreError
from artoo.contracts.events import ModelCalled
from artoo.contracts.memory import DreamReport, Megram, MegramState, MemoryWritten, TLayerProposal
from artoo.contracts.roles import Role
from artoo.contracts.tags import kind_pair
from artoo.memory.dreams import Dreams
from artoo.ports.model import Model
from artoo.runtime.memory.shared_memory import Memories
from artoo.runtime.task.persona import MANIFEST, accept_text, accepted_texts
from artoo.runtime.task.role_context import TaskMemory
from artoo.testing import FakeClock, ScriptedModel, SequentialIds, with_body

ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}

GLOB = kind_pair("glob", "find all notes")


class Place:
    """A memory on disk with its bus and a clock that the test moves."""

    def __init__(self, directory: Path, *, model: Model | None = None, busy: bool = False) -> None:
        self.clock, self.heard = FakeClock(), list[Envelope]()
        self.ids = SequentialIds()
        bus = InProcessBus(self.clock, self.ids)
        bus.attach(self.heard.append)
        self.busy = busy
        self.bus = bus
        self.memories = Memories(
            directory, directory / "spool", bus, self.clock, self.ids, busy=lambda: self.busy, model=model
        )

    def reports(self) -> list[DreamReport]:
        """What the Dreamer has reported."""
        return [each.payload for each in self.heard if isinstance(each.payload, DreamReport)]

    async def until_report(self, seconds: int = 1_000) -> float:
        """Moves time until the Dreamer reports; how many seconds that took."""
        for passed in range(seconds):
            if self.reports():
                return passed
            async with asyncio.timeout(10):
                while not (self.clock.sleepers or self.reports()):  # noqa: ASYNC110 - a thread is at the store
                    await asyncio.sleep(0.001)
            self.clock.advance(1.0)
            await asyncio.sleep(0)
        raise AssertionError("the Dreamer reported nothing")


def megram(number: int, clock: FakeClock, sigma: float = 1.0) -> Megram:
    """A good experience with glob."""
    return Megram(
        id=f"m{number:04}",
        created_at=clock.now(),
        space=GLOB.space,
        entity=GLOB.entity,
        content="found it",
        state=MegramState.ACCEPT,
        f=0.9,
        sigma=sigma,
        k=0.05,
    )


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path / "memory")
    yield made
    await made.memories.close()


async def test_the_dreamer_looks_soon_after_a_task(place: Place) -> None:
    """A nudge brings the next pass forward from five minutes to the settle delay; it belongs to no task."""
    await place.memories.open()
    place.memories.nudge()
    assert await place.until_report() < 60
    (said,) = [each for each in place.heard if isinstance(each.payload, DreamReport)]
    assert (said.sender, said.task_id) == (Role.DREAMER, "")
    assert place.reports()[0].error is None
    assert place.bus.open_tasks == 0


async def test_strong_experience_becomes_a_rule_on_the_stream(tmp_path: Path) -> None:
    """With a model, a one-sided cluster is worded: call and rule are on the stream, and the rule counts."""
    script = {"SOPDraft": {"rule": "Look with glob first.", "reason": "it always worked"}}
    with ScriptedModel(script) as model:
        place = Place(tmp_path, model=model)
        memory = await place.memories.open()
        for number in range(8):
            memory.remember.write(megram(number, place.clock))
        await memory.remember.flush()
        place.memories.nudge()
        await place.until_report()
        (call,) = [each.payload for each in place.heard if isinstance(each.payload, ModelCalled)]
        (rule,) = [each.payload for each in place.heard if isinstance(each.payload, MemoryWritten)]
        assert (call.role, call.contract) == (Role.DREAMER, "SOPDraft")
        assert (rule.level, rule.state, rule.k) == ("C", "consolidated", 0.0)
        advice = await memory.recall.calibrate("anything", [GLOB])
        assert advice.should_prefer[0].content.startswith("Look with glob first.")
        await place.memories.close()


async def test_a_dreamer_that_fails_says_so_and_takes_nothing_with_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the Dreamer did not expect ends it with a report; memory goes on."""

    async def fails(*_: object) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(Dreams, "mark", fails)
    memory = await place.memories.open()
    place.memories.nudge()
    await place.until_report()
    assert "unforeseen" in (place.reports()[0].error or "")
    assert (await memory.recall.potentials_of([GLOB]))[0].attention == 0


async def test_an_unusable_store_is_no_memory_and_says_why(tmp_path: Path) -> None:
    """Writes are let go, every reading says what is wrong, and a store that was mended is used by the next task."""
    (tmp_path / "memory.db").write_bytes(b"not a store" * 1_000)
    place = Place(tmp_path)
    memory = await place.memories.open()
    memory.remember.write(megram(1, place.clock))
    for reading in readings(memory):
        with pytest.raises(MemoryStoreError, match="damaged"):
            await reading
    (tmp_path / "memory.db").unlink()
    assert (await (await place.memories.open()).recall.potentials_of([GLOB]))[0].attention == 0
    await place.memories.close()


def readings(memory: TaskMemory) -> tuple[Awaitable[object], ...]:
    """Every way to read."""
    recall = memory.recall
    return (
        recall.potentials_of([GLOB]),
        recall.calibrate("x"),
        recall.alternatives("x"),
        recall.tool_pairs(),
        recall.taught_by("t"),
    )


async def test_accepted_texts_stand_in_every_prompt(tmp_path: Path) -> None:
    """What the operator accepted is part of the system message of each role's call."""
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("x\ny\n")
    accept_text(home, proposal(1, "Look before you write."))
    script = {
        "Plan": {
            "subtasks": [
                {"sequence": 1, "intent": "count lines of a.txt", "tool": "shell", "success_criteria": [ANSWERED]}
            ]
        },
        "ExecutorStep": with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt"),
    }
    heard: list[Envelope] = []
    with ScriptedModel(script) as model:
        config = Config.model_validate({"workspace": tmp_path / "workspace"}).at_home(home)
        async with Artoo(config, model=model) as artoo:
            artoo.bus.attach(heard.append)
            await artoo.run("How many lines has a.txt?", options=RunOptions(project=project))
    calls = [each.payload for each in heard if isinstance(each.payload, ModelCalled)]
    assert calls and all("Look before you write." in call.system for call in calls)


def proposal(number: int, text: str) -> TLayerProposal:
    """Something that the Dreamer would like to become permanent."""
    return TLayerProposal(id=f"p{number}", proposed_at=FakeClock().now(), text=text)


@pytest.mark.parametrize("change", ["edited", "added", "removed", "manifest"])
def test_a_changed_t_layer_is_refused(tmp_path: Path, change: str) -> None:
    """A text that was changed, added or removed by hand is named, and nothing runs with it."""
    file = accept_text(tmp_path, proposal(1, "Look before you write."))
    if change == "added":
        (file.parent / "mine.md").write_text("Obey me.")
    elif change == "manifest":
        (file.parent / MANIFEST).chmod(0o600)
        (file.parent / MANIFEST).write_text("{")
    else:
        file.unlink()
        if change == "edited":
            file.write_text("Write before you look.")
    with pytest.raises(ConfigurationError, match=r"mine\.md|p1\.md|manifest"):
        accepted_texts(tmp_path)
