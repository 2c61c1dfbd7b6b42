"""The spooling tap: memory, then disk, then an exact count; always in order."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from bus_doubles import TASK, new_bus, request

from artoo.bus.spool import READ_SIZE, SpoolingTap
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ProtocolError, StreamClosed
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.ports.spool import Gap, Spool


def shown(items: list[Envelope | Gap]) -> list[str | int]:
    """A message as its text, a gap as its count."""
    found: list[str | int] = []
    for item in items:
        if isinstance(item, Gap):
            found.append(item.count)
        else:
            assert isinstance(item.payload, UserRequest)
            found.append(item.payload.text)
    return found


def publish(tap: SpoolingTap, *words: str, task_id: str = TASK) -> None:
    bus = new_bus()
    bus.attach(tap)
    port = bus.port(Role.USER, task_id)
    for word in words:
        port.publish(request(word))


async def everything(tap: SpoolingTap) -> list[str | int]:
    tap.finish()
    return shown([item async for item in tap])


async def test_messages_that_fit_into_memory_never_touch_the_disk(tmp_path: Path) -> None:
    """No file is made while the consumer keeps up."""
    with SpoolingTap(tmp_path) as tap:
        spool: Spool = tap
        publish(tap, "a", "b")
        assert shown(await tap.receive_batch()) == ["a", "b"]
        assert spool.accepted == 2
        assert not os.listdir(tmp_path)  # noqa: PTH208


async def test_a_waiting_consumer_is_woken_and_told_the_end(tmp_path: Path) -> None:
    """It gets a message that comes while it waits, and StreamClosed once the tap is finished and empty."""
    with SpoolingTap(tmp_path) as tap:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(tap.receive_batch())
            await asyncio.sleep(0)
            with pytest.raises(ProtocolError, match="already has a consumer"):
                await tap.receive_batch()
            publish(tap, "a")
        assert shown(waiting.result()) == ["a"]
        tap.finish()
        with pytest.raises(StreamClosed):
            await tap.receive_batch()


async def test_a_consumer_that_gave_up_is_not_woken_for_the_next(tmp_path: Path) -> None:
    """After a cancelled wait the next consumer gets the message."""
    with SpoolingTap(tmp_path) as tap:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await tap.receive_batch()
        publish(tap, "a")
        assert await everything(tap) == ["a"]


async def test_what_exceeds_memory_goes_through_a_private_file(tmp_path: Path) -> None:
    """Order is kept across memory and file, the file is 0600, and it is emptied and removed."""
    with SpoolingTap(tmp_path / "spool", memory_limit=3) as tap:
        words = [str(number) for number in range(20)]
        publish(tap, *words[:15])
        assert tap.spilled == 12
        assert tap.file is not None
        assert tap.file.stat().st_mode & 0o777 == 0o600
        assert shown(await tap.receive_batch(limit=5)) == words[:3]
        assert shown(await tap.receive_batch(limit=5)) == words[3:8]
        publish(tap, *words[15:])
        assert tap.spilled == 17, "while the file is not drained, order needs the file"
        received: list[str | int] = []
        while len(received) < 12:
            received += shown(await tap.receive_batch(limit=5))
        assert received == words[8:]
        path = tap.file
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(tap.receive_batch())
            await asyncio.sleep(0)
            assert path.stat().st_size == 0, "a drained file gives its room back"
            publish(tap, "memory again")
        assert shown(waiting.result()) == ["memory again"]
        assert tap.spilled == 17
    assert not path.exists()


async def test_lines_longer_than_one_read_are_read_whole(tmp_path: Path) -> None:
    """A message may be longer than the chunk in which the file is read."""
    with SpoolingTap(tmp_path, memory_limit=1) as tap:
        words = ["a", "b" * (READ_SIZE + 10), "c"]
        publish(tap, *words)
        assert await everything(tap) == words


async def test_a_full_disk_leaves_a_gap_with_the_exact_count(tmp_path: Path) -> None:
    """Beyond the disk's limit messages are counted by task, at their place; afterwards memory serves again."""
    with SpoolingTap(tmp_path, memory_limit=1, disk_limit=300) as tap:
        publish(tap, "memory", "disk", "lost")
        publish(tap, "lost", "lost", task_id="another")
        assert tap.lost == 3
        items = [await tap.receive_batch() for _ in range(3)]
        assert [shown(batch) for batch in items] == [["memory"], ["disk"], [3]]
        [gap] = items[2]
        assert isinstance(gap, Gap)
        assert dict(gap.by_task) == {TASK: 1, "another": 2}
        assert "limit of 300 bytes" in gap.reason
        publish(tap, "after")
        assert await everything(tap) == ["after"]
        assert tap.accepted == 6


async def test_a_disk_that_works_again_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails, in the middle of a line too, costs that message alone."""
    real = os.pwrite
    failing = iter([False, True, True, False])

    def sometimes(descriptor: int, data: bytes, offset: int) -> int:
        if next(failing):
            real(descriptor, data[:7], offset)
            raise OSError(28, "No space left on device")
        return real(descriptor, data, offset)

    with SpoolingTap(tmp_path, memory_limit=1) as tap:
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", sometimes)
            publish(tap, "a", "b", "lost", "lost", "e")
        assert await everything(tap) == ["a", "b", 2, "e"]


async def test_a_file_that_cannot_be_made_is_a_gap_too(tmp_path: Path) -> None:
    """The publisher never sees the disk's errors."""
    (tmp_path / "not a directory").write_text("")
    with SpoolingTap(tmp_path / "not a directory" / "spool", memory_limit=1) as tap:
        publish(tap, "a", "lost")
        assert await everything(tap) == ["a", 1]


async def test_a_spool_file_that_was_cut_is_counted_as_lost(tmp_path: Path) -> None:
    """When somebody shortens the file, the consumer gets a gap with the exact count and goes on."""
    with SpoolingTap(tmp_path, memory_limit=1) as tap:
        publish(tap, "a", "lost", "lost")
        assert tap.file is not None
        os.truncate(tap.file, 10)
        assert await everything(tap) == ["a", 2]
        assert tap.lost == 2


async def test_a_damaged_line_is_counted_as_lost(tmp_path: Path) -> None:
    """A line that is no message any more is a gap of one; the next line is read."""
    with SpoolingTap(tmp_path, memory_limit=1) as tap:
        publish(tap, "a", "lost", "c")
        assert tap.file is not None
        with tap.file.open("r+b") as file:
            file.write(b"XX")
        assert await everything(tap) == ["a", 1, "c"]


async def test_gaps_count_a_bounded_number_of_tasks(tmp_path: Path) -> None:
    """The count stays exact when very many tasks lose messages; the last ones share an entry."""
    with SpoolingTap(tmp_path, memory_limit=1, disk_limit=0) as tap:
        publish(tap, "kept")
        for number in range(1_005):
            publish(tap, "lost", task_id=f"task-{number}")
        tap.finish()
        _, gap = [item async for item in tap]
        assert isinstance(gap, Gap)
        assert gap.count == 1_005
        assert dict(gap.by_task)[""] == 5


async def test_a_finished_tap_takes_nothing_more(tmp_path: Path) -> None:
    """A tap that was finished but not detached says so; the bus detaches it and goes on."""
    tap = SpoolingTap(tmp_path)
    tap.close()
    tap.close()
    with pytest.raises(ProtocolError, match="detach it"):
        tap(new_bus().port(Role.USER, TASK).publish(request()))


async def test_closing_early_says_what_nobody_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Messages that were never consumed are not forgotten in silence."""
    with SpoolingTap(tmp_path, memory_limit=1, name="display") as tap:
        publish(tap, "a", "b")
    assert "the spool of display was closed with 2 messages that nobody read" in caplog.text
    assert not os.listdir(tmp_path)  # noqa: PTH208
