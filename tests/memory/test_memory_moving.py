from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from artoo.cluster.migrate import memory as part_of
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.memory import Level, Megram, Origin, TLayerProposal
from artoo.contracts.tags import tool_pair
from artoo.memory.service import SharedMemory
from artoo.store.address import StoreAddress
from artoo.store.connecting import connect
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

Make = Callable[..., Megram]

GLOB, CURL = tool_pair("glob"), tool_pair("curl")


async def filled(place: Path, make: Make, clock: FakeClock, ids: SequentialIds) -> None:
    """A closed store of a home with something of everything."""
    memory = SharedMemory.open(place, clock, ids)
    for number in range(1_200):
        memory.write(make(GLOB, content=f"{number} \0 ünï", origin=Origin(task_id="t", intent="find_all_pdf")))
    memory.write(make(CURL, level=Level.COMMON_SENSE))
    await memory.flush()
    await memory.query_c(*CURL)
    await memory.flush()
    dreams = memory.dreams()
    async with dreams.turn():
        await dreams.set_mark("promoted:+1:x|y", "6.5")
        await dreams.set_mark("cursor:forget", "a place")
        await dreams.propose(TLayerProposal(id="p1", proposed_at=clock.now(), text="a rule"), "proposed:x")
    await memory.close()


async def test_memory_moves_into_a_store_and_back(
    store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds
) -> None:
    """Rows and hashes are the same in the home, in the store and in a second home, and so are potentials."""
    await filled(tmp_path / "one", make, clock, ids)
    first, second = part_of(tmp_path / "one"), part_of(tmp_path / "two")
    before = first.in_home()
    assert {one.table: one.rows for one in before} == {
        "megrams": 1_201, "sums": 1, "recalled": 1, "worked": 1, "marks": 3, "reports": 0, "proposals": 1,
    }  # fmt: skip
    assert second.in_home() == ()
    assert first.move_in(store) == before == first.in_store(store)
    assert second.move_out(store) == before == second.in_home()
    found = [
        SharedMemory.open(tmp_path / "one", clock, ids),
        SharedMemory.shared(store, tmp_path / "spool", clock, ids),
        SharedMemory.open(tmp_path / "two", clock, ids),
    ]
    potentials = [await memory.potentials_of([GLOB, CURL]) for memory in found]
    assert potentials[0] == potentials[1] == potentials[2]
    assert [len(await memory.alternatives("find all pdf")) for memory in found] == [1, 1, 1]
    for memory in found:
        assert (await memory.books.examine()).sound
        await memory.close()


async def test_memory_moves_only_to_where_none_is(
    store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds
) -> None:
    """A store and a home that have memory already are left alone."""
    await filled(tmp_path / "one", make, clock, ids)
    part_of(tmp_path / "one").move_in(store)
    before = part_of(tmp_path / "one").in_store(store)
    with pytest.raises(ConfigurationError, match="has memory already"):
        part_of(tmp_path / "one").move_in(store)
    with pytest.raises(ConfigurationError, match="has memory already"):
        part_of(tmp_path / "one").move_out(store)
    assert part_of(tmp_path / "one").in_store(store) == before


async def test_memory_that_changes_on_the_way_is_not_moved(
    store: StoreAddress, tmp_path: Path, make: Make, clock: FakeClock, ids: SequentialIds
) -> None:
    """What arrives is compared with what left; where they differ nothing is kept."""
    await filled(tmp_path / "one", make, clock, ids)
    with connect(store) as connection:
        connection.execute("CREATE RULE meddle AS ON INSERT TO memory_proposals DO INSTEAD NOTHING")
    with pytest.raises(Exception, match="nothing was moved"):
        part_of(tmp_path / "one").move_in(store)
    assert sum(one.rows for one in part_of(tmp_path / "one").in_store(store)) == 0
