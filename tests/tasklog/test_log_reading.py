"""Logs are found, listed and read while they are written; damage is named by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_doubles import START, TASK, call, final, message, request, task, write

from artoo.contracts.errors import ConfigurationError, MessageUnreadable
from artoo.tasklog.layout import LogLimits, part_path, task_directory
from artoo.tasklog.reader import TaskLogReader, find_log, list_tasks


async def test_tasks_are_listed_latest_first(tmp_path: Path) -> None:
    """A list needs only the ends of each log: who asked what, when, and how it ended."""
    later = [message(request("second"), 100, task_id="b"), message(call("{}"), 101, task_id="b")]
    await write(tmp_path, [*task("a", "first"), *later])
    (tmp_path / "tasks" / "empty").mkdir()
    running, done = list_tasks(tmp_path)
    assert (done.task_id, done.request, done.started) == ("a", "first", START)
    assert done.result == final()
    assert (running.task_id, running.request, running.result) == ("b", "second", None)
    assert done.bytes == part_path(done.directory, 0).stat().st_size
    assert [summary.task_id for summary in list_tasks(tmp_path, limit=1)] in (["a"], ["b"])


async def test_a_list_is_made_of_what_can_be_read(tmp_path: Path) -> None:
    """A log without a single message is left out, one with a bad line is still listed."""
    assert list_tasks(tmp_path) == []
    await write(tmp_path, task("a"))
    path = part_path(task_directory(tmp_path, "a"), 0)
    path.write_bytes(path.read_bytes() + b"what is this\n")
    empty = part_path(task_directory(tmp_path, "b"), 0)
    empty.parent.mkdir()
    empty.write_bytes(b'{"artoo_task_log":1,"task_id":"b","part":0}\n')
    [summary] = list_tasks(tmp_path)
    assert summary.result == final()


async def test_an_ending_is_found_in_a_long_log(tmp_path: Path) -> None:
    """The end is read from the tail of the last part, with its long strings put back."""
    messages = [message(request("x" * 3_000), 0), *(message(call("y" * 900), n) for n in range(1, 600))]
    await write(
        tmp_path, [*messages, message(final("z" * 3_000), 600)], limits=LogLimits(inline=1_000, part=400_000)
    )
    [summary] = list_tasks(tmp_path)
    assert summary.request == "x" * 3_000
    assert summary.result == final("z" * 3_000)


@pytest.mark.parametrize("before", [0, 1, 3_000])
async def test_an_ending_of_any_length_is_found(tmp_path: Path, before: int) -> None:
    """A result names all that was changed: one line may be longer than what is read of a log's end."""
    long = final("all of it " * 60_000)
    calls = (message(call("y"), number) for number in range(1, before))
    messages = [message(request(), 0), *calls, message(long, before + 1)]
    await write(tmp_path, messages, limits=LogLimits(inline=10_000_000))
    [summary] = list_tasks(tmp_path)
    assert summary.result == long


async def test_a_task_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    """An unambiguous beginning is enough; otherwise the error says what to do."""
    await write(tmp_path, [*task("abc-1"), *task("abd-2")])
    assert next(iter(find_log(tmp_path, "abc").envelopes())).task_id == "abc-1"
    assert next(iter(find_log(tmp_path, "abd-2").envelopes())).task_id == "abd-2"
    with pytest.raises(ConfigurationError, match=r"beginning of 2 tasks \(abc-1, abd-2\);"):
        find_log(tmp_path, "ab")
    with pytest.raises(ConfigurationError, match="no task 'x'"):
        find_log(tmp_path, "x")
    with pytest.raises(ConfigurationError, match="no task log in"):
        TaskLogReader(tmp_path)


@pytest.mark.parametrize("bad", [b"not json", b'{"v":1,"kind":"Gossip"}', b'{"v":9}'])
async def test_a_damaged_line_is_named(tmp_path: Path, bad: bytes) -> None:
    """A bad line in the middle is an error with file and line number, not a shorter log."""
    await write(tmp_path, task())
    path = part_path(task_directory(tmp_path, TASK), 0)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], bad + b"\n", *lines[3:]]))
    with pytest.raises(MessageUnreadable, match=r"log\.jsonl, line 3"):
        list(TaskLogReader(path.parent))


async def test_a_log_of_another_version_is_refused(tmp_path: Path) -> None:
    """A file whose header this version does not know is not guessed at."""
    path = part_path(task_directory(tmp_path, TASK), 0)
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"artoo_task_log":2}\n')
    with pytest.raises(MessageUnreadable, match="header says 2"):
        list(TaskLogReader(path.parent))
