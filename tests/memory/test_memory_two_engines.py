from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from artoo.contracts.memory import Level, Megram, MegramState, Origin, Potentials, StoredLevel
from artoo.contracts.tags import Pair, micro_pair, tool_pair
from artoo.memory.service import SharedMemory
from artoo.store.address import StoreAddress
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

DAY = 86_400.0
PAIRS = [tool_pair("glob"), tool_pair("curl"), micro_pair("shell:find", "/tmp"), Pair("intent:x\0y|z", "%" * 300)]
STATES = list(MegramState)
OFTEN = {"write": 60, "oppose": 8, "touch": 6, "forget": 10, "demote": 6, "clock": 10}
COMPARED_EVERY = 100


@dataclass
class Twins:
    """A store on each engine, which are told the same things at the same times."""

    clock: FakeClock
    stores: tuple[SharedMemory, SharedMemory]
    random: random.Random
    written: dict[str, Megram] = field(default_factory=dict[str, Megram])

    async def step(self, number: int) -> None:
        """One random operation on both."""
        match self.random.choices(("write", "oppose", "touch", "forget", "demote", "clock"), (60, 8, 6, 10, 6, 10))[
            0
        ]:
            case "write":
                self._write(number)
            case "oppose" if self.written:
                await self._settled()
                self._oppose(number, self.random.choice(list(self.written)))
            case "touch":
                await self._settled()  # which rules are found depends on what is stored
                pair = self.random.choice(PAIRS)
                for store in self.stores:
                    await store.query_c(*pair)
            case "forget" if self.written:
                await self._settled()
                megram_id = self.random.choice(list(self.written))
                gone = [await store.books.forget_one(megram_id) for store in self.stores]
                assert gone[0] == gone[1]
                self.written.pop(megram_id)
            case "demote":
                await self._settled()
                await self._demote()
            case "clock":
                self.clock.jump(self.random.choice((1.0, DAY, 30 * DAY, 400 * DAY, -DAY, -100 * DAY)))
            case _:
                pass

    async def potentials(self) -> tuple[tuple[Potentials, ...], tuple[Potentials, ...]]:
        """Of all pairs, on both, once all is stored."""
        await self._settled()
        embedded, shared = self.stores
        return await embedded.potentials_of(PAIRS), await shared.potentials_of(PAIRS)

    def _write(self, number: int) -> None:
        pair, state = self.random.choice(PAIRS), self.random.choice(STATES)
        level: StoredLevel = self.random.choice((Level.MEGRAM, Level.MEGRAM, Level.KNOWLEDGE, Level.COMMON_SENSE))
        f = self.random.choice((0.0, 0.1, 0.85, 0.95, self.random.random(), self.random.random() * 2.0**-900))
        k = self.random.choice((0.0, 0.05, 0.2, 0.5, self.random.random()))
        megram = Megram(
            id=f"m{number:06d}",
            level=level,
            created_at=self.clock.now(),
            space=pair.space,
            entity=pair.entity,
            content=f"{number} \0 ünï",
            state=state,
            f=f,
            sigma=self.random.choice((-1.0, 0.0, 0.5, 1.0, self.random.uniform(-1, 1))),
            k=0.0 if level is Level.COMMON_SENSE else k,
            origin=Origin(task_id="t", intent="an intent", hypothesis=self.random.random() < 0.1),
        )
        self.written[megram.id] = megram
        for store in self.stores:
            store.write(megram)

    def _oppose(self, number: int, megram_id: str) -> None:
        ids = {store.record_negative_feedback(megram_id, f"{number} was wrong") for store in self.stores}
        assert len(ids) == 1

    async def _demote(self) -> None:
        rules = [megram.id for megram in self.written.values() if megram.is_rule]
        if not rules:
            return
        rule = self.random.choice(rules)
        for store in self.stores:
            dreams = store.dreams()
            async with dreams.turn():
                await dreams.demote(rule, 0.05, self.clock.now())
        self.written[rule] = self.written[rule].model_copy(update={"level": Level.KNOWLEDGE})

    async def _settled(self) -> None:
        for store in self.stores:
            await store.flush()


@pytest.fixture
async def twins(tmp_path: Path, store: StoreAddress) -> AsyncGenerator[Twins]:
    """Two empty stores."""
    clock = FakeClock(auto_advance=True)
    embedded = SharedMemory.open(tmp_path / "memory", clock, SequentialIds())
    shared = SharedMemory.shared(store, tmp_path / "spool", clock, SequentialIds())
    yield Twins(clock, (embedded, shared), random.Random(15))
    await shared.close()
    await embedded.close()


async def same_potentials(twins: Twins, operations: int) -> None:
    """Runs the operations and compares, with the clock as it is and set back to before most of what was written."""
    for number in range(1, operations + 1):
        await twins.step(number)
        if number % COMPARED_EVERY == 0 or number == operations:
            embedded, shared = await twins.potentials()
            assert embedded == shared
    twins.clock.jump(-500 * DAY)
    embedded, shared = await twins.potentials()
    assert embedded == shared
    assert any(live.attention > 0 for live in embedded)
    for store in twins.stores:
        found = await store.books.examine()
        assert found.sound, found.examples
    lines = [[line async for line in store.books.exported()] for store in twins.stores]
    assert lines[0] == lines[1]


async def test_both_engines_have_the_same_potentials(twins: Twins) -> None:
    """600 random operations leave the same potentials to the last digit, and the same records, on both engines."""
    await same_potentials(twins, 600)


@pytest.mark.torture
async def test_both_engines_have_the_same_potentials_at_length(twins: Twins) -> None:
    """The same with 10,000 operations."""
    await same_potentials(twins, 10_000)
