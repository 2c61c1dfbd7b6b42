"""Does experience change what artoo does? A scripted planner that reads its prompt, real tools, a real store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from scenario import Ended, World, matches, plan, story, subtask

from artoo import tool
from artoo.contracts.memory import Megram, MegramState, MemoryAction, MemoryRead, MemoryWritten
from artoo.contracts.plan import Plan
from artoo.contracts.tags import Pair, micro_pair, placed
from artoo.memory.service import SharedMemory
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.testing import Asked
from artoo.testing.replies import Scripted

HABIT = ("old_index", "stale_cache", "new_index")
"""The order in which the scripted planner tries tools when nothing speaks for or against one."""


@tool
def old_index(name: str) -> str:
    """Looks a name up."""
    return f"{name}: no longer maintained"


@tool
def stale_cache(name: str) -> str:
    """Looks a name up in what was loaded before."""
    return f"{name}: evicted"


@tool
def new_index(name: str) -> str:
    """Looks a name up, too."""
    return f"{name} = {len(name)}"


TOOLS = (old_index, stale_cache, new_index)


class Travelling:
    """Real time, from another day on."""

    def __init__(self) -> None:
        self.days = 0.0
        self._clock = SystemClock()

    def now(self) -> datetime:
        return self._clock.now() + timedelta(days=self.days)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


def tools_under(heading: str, prompt: str) -> list[str]:
    """The tools that a section of the prompt names: `- glob`, `- glob on a.txt`, `- a.txt (with glob)`."""
    _, found, rest = prompt.partition(f"{heading}:\n")
    section = rest.partition("\n\n")[0] if found else ""
    return [name for name in HABIT if name in section]


def planner_by_the_prompt(asked: Asked) -> Scripted:
    """Takes what it should prefer, leaves what it must not use, and is a creature of habit otherwise."""
    name = asked.user.partition("Look up ")[2].split()[0].strip('".:;')
    if asked.contract == "Plan":
        forbidden, preferred = tools_under("Must not use", asked.user), tools_under("Should prefer", asked.user)
        willing = [name for name in HABIT if name not in forbidden]
        chosen = next((name for name in willing if name in preferred), willing[0])
        return plan(subtask(f'ask {chosen} about "{name}"', matches(r" = \d+", "the value is there"), tool=chosen))
    suggested = asked.user.rpartition("Suggested tool: ")[2].split()[0]
    return {"tool": suggested, "input": name, "is_final": True}


async def play(world: World, name: str, clock: Travelling, *, memory: bool = True) -> Ended:
    """One task: look something up."""
    return await world.play(
        f"Look up {name}", planner_by_the_prompt, tools=TOOLS, clock=clock, options=world.options(memory=memory)
    )


async def rounds(world: World, names: Sequence[str], clock: Travelling, *, memory: bool = True) -> list[int]:
    """How many rounds each task took until its result was accepted."""
    taken: list[int] = []
    for name in names:
        ended = await play(world, name, clock, memory=memory)
        assert ended.directive == "accept", story(ended.envelopes)
        taken.append(len(ended.directives))
    return taken


NAMES = ("alpha", "beta", "gamma")


async def test_rounds_to_success_fall(world: World) -> None:
    """What failed once is not tried again in later tasks, on other targets too."""
    assert await rounds(world, NAMES, Travelling()) == [3, 1, 1]


async def test_what_has_decayed_comes_back(world: World) -> None:
    """After weeks of silence the habit is tried again: what was wrong then may be right now."""
    clock = Travelling()
    assert await rounds(world, ["alpha", "beta"], clock) == [3, 1]
    clock.days = 60
    ended = await play(world, "gamma", clock)
    assert ended.all(Plan)[0].subtasks[0].tool == "old_index"


async def test_the_failing_pair_is_enforced_in_the_next_task(world: World) -> None:
    """The next task's plan forbids the tool to the executor as well: blocking is not a request."""
    clock = Travelling()
    await rounds(world, ["alpha"], clock)
    (planned,) = (await play(world, "beta", clock)).all(Plan)
    assert {"old_index", "stale_cache"} <= set(planned.must_not.tools)


async def test_every_write_is_on_the_stream(world: World) -> None:
    """A task that broke symmetry teaches three things: the failing pairs as change_approach, the pairs that then
    matched with the deferred +.75, and on accept the pairs used and the intent."""
    ended = await play(world, "alpha", Travelling())
    taught = {
        (each.state.value, each.space, each.entity): (each.f, each.sigma, each.k)
        for each in ended.all(MemoryWritten)
    }
    assert ended.directives == ["break_symmetry", "break_symmetry", "accept"]
    entities = (f"path:{world.project}/alpha", "intent:look_up_alpha", "env:local")
    for name in ("old_index", "stale_cache"):
        for entity in entities:
            assert taught["break_symmetry", f"tool:{name}", entity] == (0.85, -1.0, 0.05)
    for entity in entities:
        assert taught["break_symmetry", "tool:new_index", entity] == (0.75, 1.0, 0.05)
        assert taught["accept", "tool:new_index", entity] == (0.90, 1.0, 0.05)
    assert taught["accept", "intent:look_up_alpha", "env:local"] == (0.90, 1.0, 0.05)
    assert taught["request", "request:look_up_alpha", "env:local"] == (0.5, 0.0, 0.01)
    assert len(taught) == 14


async def test_mixed_experience_is_caution(world: World) -> None:
    """Five great and five terrible outcomes are Caution, not Ignore, and the call asks first; the answer of nobody
    is no."""
    pair = placed(micro_pair("new_index", "alpha"), str(world.project))
    await experience(world, pair, sigma=1.0, times=5)
    await experience(world, pair, sigma=-1.0, times=5)
    ended = await play(world, "alpha", Travelling())
    seen = {entry.pair: entry.action for read in ended.all(MemoryRead) for entry in read.potentials}
    assert seen[pair] is MemoryAction.CAUTION
    asked = next(call for call in ended.calls if call.tool == "new_index")
    assert asked.status == "refused" and "nobody agreed" in (asked.reason or "")


async def test_a_damaged_store_costs_the_memory_not_the_task(world: World) -> None:
    """The task goes on without memory, and MemoryRead says why."""
    (world.home / "memory").mkdir()
    (world.home / "memory" / "memory.db").write_bytes(b"not a store" * 1_000)
    ended = await play(world, "alpha", Travelling())
    assert ended.directive == "accept"
    assert "damaged" in (ended.all(MemoryRead)[0].error or "")


async def experience(world: World, pair: Pair, *, sigma: float, times: int) -> None:
    """Writes outcomes of another day into the world's memory."""
    clock, ids = SystemClock(), UuidIds()
    memory = SharedMemory.open(world.home / "memory", clock, ids)
    for _ in range(times):
        memory.write(
            Megram(
                id=ids.new(),
                created_at=clock.now(),
                space=pair.space,
                entity=pair.entity,
                content=json.dumps({"sigma": sigma}),
                state=MegramState.ACCEPT if sigma > 0 else MegramState.CHANGE_APPROACH,
                f=0.9,
                sigma=sigma,
                k=0.05,
            )
        )
    await memory.close()
