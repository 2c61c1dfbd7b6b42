"""What memory keeps on this machine while the store is away: nothing lost, nothing torn, given on whole."""

from __future__ import annotations

import resource
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram
from artoo.contracts.tags import tool_pair
from artoo.memory.commands import Append, Command
from artoo.memory.spool import MemorySpool

Make = Callable[..., Megram]


@contextmanager
def files_end_at(size: int) -> Generator[None]:
    """No file of this process grows beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_could_not_be_taken_now_is_taken_later(tmp_path: Path, make: Make) -> None:
    """A store that goes away again in between leaves all of it to the next attempt, of whatever process."""
    said: list[Command] = [Append(make(tool_pair("glob"))) for _ in range(3)]
    MemorySpool(tmp_path).add(said)

    def away(_: list[Command]) -> None:
        raise MemoryStoreError("away again")

    with pytest.raises(MemoryStoreError, match="away again"):
        MemorySpool(tmp_path).hand_over(away)
    taken: list[Command] = []
    MemorySpool(tmp_path).hand_over(taken.extend)
    assert taken == said and MemorySpool(tmp_path).is_empty()


def test_a_disk_that_fills_tears_nothing(tmp_path: Path, make: Make) -> None:
    """What has no room is refused whole, and what is kept after it is read."""
    first, second, third = ([Append(make(tool_pair("glob"), content="x" * 8_000))] * 9 for _ in range(3))
    spool = MemorySpool(tmp_path)
    spool.add(first)
    with files_end_at(4_096), pytest.raises(MemoryStoreError, match="disk is full"):
        spool.add(second)
    spool.add(third)
    taken: list[Command] = []
    spool.hand_over(taken.extend)
    assert taken == [*first, *third]
