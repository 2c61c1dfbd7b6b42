"""What memory keeps on this machine while the store is away: nothing lost, nothing torn, given on whole."""

from __future__ import annotations

import resource
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram
from artoo.contracts.tags import tool_pair
from artoo.memory.commands import Append, Command
from artoo.memory.postgres.spool import Spool

Make = Callable[..., Megram]

MOST = 1 << 20


def left_by_the_dead(directory: Path, commands: list[Command]) -> Path:
    """The file of a process that has ended."""
    before = set(directory.glob("*.jsonl"))
    spool = Spool(directory, most_bytes=MOST)
    spool.add(commands)
    spool.close()
    (path,) = set(directory.glob("*.jsonl")) - before
    return path


@contextmanager
def files_end_at(size: int) -> Generator[None]:
    """No file of this process grows beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_two_processes_take_over_what_others_left(tmp_path: Path, make: Make) -> None:
    """Files that one process has taken to their end meanwhile are no matter to the other: each comes once."""
    said = [Append(make(tool_pair("glob"))) for _ in range(4)]
    for command in said:
        left_by_the_dead(tmp_path, [command])
    with closing(Spool(tmp_path, most_bytes=MOST).batches()) as slow:
        first = next(slow)
        others = [each for batch in Spool(tmp_path, most_bytes=MOST).batches() for each in batch]
        rest = [each for batch in slow for each in batch]
    taken = [each for each in (*first, *others, *rest) if isinstance(each, Append)]
    assert sorted(each.megram.id for each in taken) == sorted(each.megram.id for each in said)
    assert not list(tmp_path.iterdir())


def test_what_could_not_be_taken_now_is_taken_later(tmp_path: Path, make: Make) -> None:
    """A store that goes away again in between leaves the file to the next attempt, of whatever process."""
    said: list[Command] = [Append(make(tool_pair("glob")))]
    left_by_the_dead(tmp_path, said)
    living = Spool(tmp_path, most_bytes=MOST)
    with closing(living.batches()) as cut:
        assert next(cut) == said
    assert list(Spool(tmp_path, most_bytes=MOST).batches()) == [said]


def test_a_disk_that_fills_tears_no_line(tmp_path: Path, make: Make) -> None:
    """What has no room is refused whole, and what is kept after it is read."""
    first, second, third = ([Append(make(tool_pair("glob")))] for _ in range(3))
    spool = Spool(tmp_path, most_bytes=MOST)
    spool.add(first)
    (path,) = tmp_path.glob("*.jsonl")
    with files_end_at(path.stat().st_size + 50), pytest.raises(MemoryStoreError, match="Cannot keep memory"):
        spool.add(second)
    spool.add(third)
    assert spool.held == 2
    assert [each for batch in spool.batches() for each in batch] == [*first, *third]
    assert spool.held == 0
