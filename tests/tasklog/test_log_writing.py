"""The task log keeps every message whole, is bounded, and says what it could not keep."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from log_doubles import TASK, ListedSpool, call, final, message, task, write

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import NotLogged
from artoo.contracts.execution import ToolCall, ToolCalled
from artoo.ports.spool import Gap
from artoo.redaction import Redactor
from artoo.tasklog.layout import LogLimits, part_path, parts_of, task_directory
from artoo.tasklog.reader import TaskLogReader
from artoo.tasklog.writer import TaskLog


def read(home: Path, task_id: str = TASK) -> list[Envelope | Gap]:
    return list(TaskLogReader(task_directory(home, task_id)))


def answers(items: list[Envelope | Gap]) -> list[object]:
    """A ModelCalled as its answer, a gap as its count, anything else as its kind."""
    return [item.count if isinstance(item, Gap) else getattr(item.payload, "answer", item.kind) for item in items]


async def test_a_log_gives_back_what_was_published(tmp_path: Path) -> None:
    """Every envelope is read back equal, in order."""
    log = await write(tmp_path, task())
    assert read(tmp_path) == task()
    assert log.missing == 0


async def test_the_file_has_a_header_and_is_private(tmp_path: Path) -> None:
    """The first line says what the file is; nobody else may read it."""
    log = await write(tmp_path, task())
    path = part_path(log.directory(TASK), 0)
    assert path == tmp_path / "tasks" / TASK / "log.jsonl"
    with path.open() as file:
        assert json.loads(file.readline()) == {"artoo_task_log": 1, "task_id": TASK, "part": 0}
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_each_task_has_its_own_log(tmp_path: Path) -> None:
    """Messages of parallel tasks are told apart; those of no task are not kept here."""
    mixed = [m for pair in zip(task("a"), task("b"), strict=True) for m in pair]
    await write(tmp_path, [*mixed, message(call("nobody's"), task_id="")])
    assert read(tmp_path, "a") == task("a")
    assert read(tmp_path, "b") == task("b")
    assert sorted(os.listdir(tmp_path / "tasks")) == ["a", "b"]  # noqa: PTH208


async def test_a_task_id_cannot_leave_the_directory(tmp_path: Path) -> None:
    """An id that is no plain file name is kept under its hash."""
    await write(tmp_path, task("../../outside"))
    assert read(tmp_path, "../../outside") == task("../../outside")
    assert len(os.listdir(tmp_path / "tasks")) == 1  # noqa: PTH208


async def test_flush_means_written(tmp_path: Path) -> None:
    """After `flush` everything published before it can be read, while the task goes on."""
    spool = ListedSpool()
    log = TaskLog(tmp_path, spool)
    async with asyncio.TaskGroup() as group:
        group.create_task(log.run())
        await log.flush()
        for envelope in task()[:2]:
            spool.add(envelope)
        await log.flush()
        assert read(tmp_path) == task()[:2]
        spool.finish()
    await log.flush()


async def test_an_ended_log_releases_those_who_wait_for_it(tmp_path: Path) -> None:
    """A log whose run is cancelled does not leave a flush waiting for ever."""
    spool = ListedSpool()
    log = TaskLog(tmp_path, spool)
    running = asyncio.ensure_future(log.run())
    await asyncio.sleep(0)
    spool.accepted += 1
    flushing = asyncio.ensure_future(log.flush())
    await asyncio.sleep(0)
    running.cancel()
    await flushing
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_log_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Messages after the task's end, or of a resumed task, are appended; a torn last line is removed first."""
    await write(tmp_path, task()[:2])
    path = part_path(task_directory(tmp_path, TASK), 0)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"v":1,"id":"torn')
    assert read(tmp_path) == task()[:2], "a reader ignores the torn line"
    await write(tmp_path, task()[2:])
    assert read(tmp_path) == task()


async def test_a_full_part_is_followed_by_the_next(tmp_path: Path) -> None:
    """Rotation keeps every message and its order, and no part is larger than it may be."""
    messages = [message(call(str(number)), number) for number in range(50)]
    limits = LogLimits(part=2_000)
    await write(tmp_path, messages[:25], limits=limits)
    await write(tmp_path, messages[25:], limits=limits)
    parts = parts_of(task_directory(tmp_path, TASK))
    assert len(parts) > 5
    assert all(part.stat().st_size <= 2_000 for part in parts)
    assert read(tmp_path) == messages


async def test_all_of_a_log_is_durable_when_its_task_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier parts, what lines and requests point to, and the names of them all: a power cut leaves no hole."""
    synced, real = set[str](), os.fsync

    def noted(descriptor: int) -> None:
        synced.add(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    directory = task_directory(tmp_path, TASK)
    (directory / "images").mkdir(parents=True)
    (directory / "images" / ("0" * 64)).write_bytes(b"x")
    messages = [message(call(str(number) * 900), number) for number in range(1, 9)]
    await write(tmp_path, messages, limits=LogLimits(part=2_000, inline=800))
    assert not synced
    await write(tmp_path, [message(final(), 30)], limits=LogLimits(part=2_000, inline=800))
    there = {str(path) for path in directory.rglob("*") if path.name != "lock"}
    assert len(parts_of(directory)) > 1 and len(there) > 10
    assert there | {str(directory), str(directory.parent)} <= synced


async def test_long_strings_lie_beside_the_log(tmp_path: Path) -> None:
    """A string beyond the limit is kept once by its hash, and put back when read; lines stay short."""
    long = "长" * 2_000
    tool = ToolCall(tool="shell", identity=("shell:cat",), output=long, changes=("short", long))
    messages = [message(call(long), 1), message(ToolCalled(subtask_id="s", attempt=1, call=tool), 2)]
    await write(tmp_path, messages, limits=LogLimits(inline=1_000))
    directory = task_directory(tmp_path, TASK)
    assert read(tmp_path) == messages
    assert max(map(len, part_path(directory, 0).read_bytes().splitlines())) < 1_500
    [blob] = (directory / "blobs").iterdir()
    assert blob.stat().st_mode & 0o777 == 0o600
    assert blob.read_text("utf-8") == long


@pytest.mark.parametrize("long", ['"' * 1_001, "\\" * 1_001, 'a\\"' * 400, "\n" * 1_001])
async def test_a_long_string_is_found_whatever_is_in_it(tmp_path: Path, long: str) -> None:
    """Quotes and backslashes, which JSON escapes, hide no string that is too long; short ones stay."""
    short = [message(call("x" * 900), 2), message(call('"' * 1_000), 3)]
    await write(tmp_path, [message(call(long), 1), *short], limits=LogLimits(inline=1_000))
    assert read(tmp_path)[1:] == short and answers(read(tmp_path))[0] == long
    assert len(list((task_directory(tmp_path, TASK) / "blobs").iterdir())) == 1


async def test_a_missing_or_damaged_blob_is_named(tmp_path: Path) -> None:
    """The rest of the message is still read; in place of the string stands what happened to it."""
    await write(tmp_path, [message(call("x" * 2_000))], limits=LogLimits(inline=1_000))
    [blob] = (task_directory(tmp_path, TASK) / "blobs").iterdir()
    blob.write_text("something else")
    assert answers(read(tmp_path)) == [f"[damaged in the log: blob {blob.name}]"]
    blob.unlink()
    assert answers(read(tmp_path)) == [f"[missing from the log: blob {blob.name}]"]


async def test_a_full_log_counts_what_follows_and_keeps_the_end(tmp_path: Path) -> None:
    """Beyond the total limit messages are counted exactly, and the task's result is still written."""
    messages = [message(call("x" * 100), number) for number in range(30)]
    log = await write(tmp_path, [*messages, message(final(), 30)], limits=LogLimits(total=3_000))
    kept = read(tmp_path)
    missing = next(item.count for item in kept if isinstance(item, Gap))
    assert log.missing == missing > 0
    assert len(kept) - 2 + missing == 30
    assert kept[-1] == message(final(), 30)
    log = await write(tmp_path, messages[:2], limits=LogLimits(total=3_000))
    assert read(tmp_path)[-1] == Gap(2, (), "the log has reached its limit of 3000 bytes")


async def test_messages_lost_before_the_log_are_noted_at_their_place(tmp_path: Path) -> None:
    """A gap of the spool becomes a line in the log of each task concerned."""
    lost = Gap(5, (("a", 2), ("b", 2), ("", 1)), "disk full")
    items = [
        message(call("1"), task_id="a"),
        lost,
        message(call("2"), task_id="a"),
        message(call("3"), task_id="b"),
    ]
    log = await write(tmp_path, items)
    assert answers(read(tmp_path, "a")) == ["1", 2, "2"]
    assert answers(read(tmp_path, "b")) == [2, "3"]
    assert log.missing == 5


async def test_a_full_disk_costs_a_counted_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a line never stays; once the disk works again the log says how many messages are missing."""
    real = os.write
    failures = iter([False, False, True, True])

    def sometimes(descriptor: int, data: bytes) -> int:
        if next(failures, False):
            real(descriptor, data[:9])
            raise OSError(28, "No space left on device")
        return real(descriptor, data)

    spool = ListedSpool()
    log = TaskLog(tmp_path, spool)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", sometimes)
        async with asyncio.TaskGroup() as group:
            group.create_task(log.run())
            for number in range(4):
                spool.add(message(call(str(number)), number))
                await log.flush()
            spool.finish()
    assert answers(read(tmp_path)) == ["0", 2, "3"]
    assert log.missing == 2


async def test_nothing_is_kept_by_a_log_that_was_cut_off(tmp_path: Path) -> None:
    """What was said and never written is not in the log: nothing may take effect on the strength of it."""
    spool = ListedSpool([message(call("0"))])
    log = TaskLog(tmp_path, spool)
    running = asyncio.ensure_future(log.run())
    await log.keep(TASK)
    running.cancel()
    await asyncio.wait((running,))
    spool.add(message(call("1"), 1))
    with pytest.raises(NotLogged):
        await log.keep(TASK)


async def test_a_full_disk_still_takes_how_a_task_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the last word something gives way, once for all tasks; it is there again with the next log."""
    real, ballast = os.write, tmp_path / "cache" / "ballast"

    def full(descriptor: int, data: bytes) -> int:
        if b"FinalResult" in data and ballast.exists():
            real(descriptor, data[:9])
            raise OSError(28, "No space left on device")
        return real(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        log = await write(tmp_path, [message(call("0"), 0), message(final(), 1)])
    assert log.missing == 0 and not ballast.exists()
    assert answers(read(tmp_path)) == ["0", "FinalResult"]
    await write(tmp_path, task("b"))
    assert ballast.stat().st_size > 0


async def test_a_log_that_cannot_be_opened_does_not_stop_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One task's trouble with the disk is said, counted, and nobody else's."""
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "a").write_text("in the way")
    log = await write(tmp_path, [*task("a"), *task("b")])
    assert read(tmp_path, "b") == task("b")
    assert log.missing == 3
    assert "task a: messages are missing in its log" in caplog.text


async def test_the_file_of_a_task_that_was_cancelled_is_closed(tmp_path: Path) -> None:
    """As soon as what was said of it is written; what is said of it later is in the same log."""
    spool = ListedSpool()
    log = TaskLog(tmp_path, spool)
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208
    async with asyncio.TaskGroup() as group:
        group.create_task(log.run())
        for number in range(20):
            spool.add(message(call("1"), task_id=f"t{number}"))
            log.let_go(f"t{number}")
        await log.flush()
        assert len(os.listdir("/dev/fd")) <= before + 1  # noqa: PTH208 - nothing else has to be said for it
        spool.add(message(call("2"), task_id="t0"))
        await log.flush()
        spool.finish()
    assert [len(list(TaskLogReader(log.directory(name)).envelopes())) for name in ("t0", "t19")] == [2, 1]


async def test_no_secret_reaches_the_disk(tmp_path: Path) -> None:
    """Shapes of secrets and known values are redacted, in lines and in blobs, and the log stays readable."""
    secret = "sk-proj-abcdefghijklmnop1234"
    long = f"export OPENAI_API_KEY={secret} " + "x" * 2_000
    items = [message(call(f'curl -H "Authorization: Bearer {secret}"\nmy-own-value')), message(call(long))]
    await write(tmp_path, items, limits=LogLimits(inline=1_000), redactor=Redactor(["my-own-value"]))
    files = [path.read_text() for path in task_directory(tmp_path, TASK).rglob("*") if path.is_file()]
    assert len(files) == 2
    assert not any(secret in text or "my-own-value" in text for text in files)
    assert answers(read(tmp_path))[0] == 'curl -H "Authorization: Bearer [redacted]"\n[redacted]'
