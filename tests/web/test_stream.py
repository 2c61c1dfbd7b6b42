"""Events by their place in the log: none is lost and none comes twice, whatever becomes of the connection."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import aiohttp
import orjson
import pytest
from web_scenes import TASK, Writer, crowd, first_round, holds, opening, second_round
from web_server import Page, page_of
from yarl import URL

from artoo.tasklog.layout import LogLimits
from artoo.web.index import MOST_OPEN, Indexes

pytestmark = pytest.mark.unreplayable


class Listener:
    """One page's stream, as a browser reads it: remembers the last id and comes back with it."""

    def __init__(self) -> None:
        self.last = ""
        self.seen: list[int] = []

    async def listen(self, page: Page, until: int) -> None:
        """Reads until so many lines were seen, then cuts the connection."""
        address = f"{page.address}/tasks/{TASK}/stream?after=-1"
        headers = {"last-event-id": self.last} if self.last else {}
        timeout = aiohttp.ClientTimeout(total=300)
        async with page.client.get(address, headers=headers, timeout=timeout) as answer:
            assert answer.status == 200 and answer.content_type == "text/event-stream"
            block: dict[str, str] = {}
            while len(self.seen) < until:
                line = (await answer.content.readuntil(b"\n")).decode().rstrip("\n")
                if line:
                    name, _, value = line.partition(": ")
                    block[name] = value
                    continue
                if block.get("event") == "rows":
                    data = orjson.loads(block["data"])
                    self.seen += range(data["first"], data["last"] + 1)
                    assert [row["n"] for row in data["rows"]] in ([], list(range(data["first"], data["last"] + 1)))
                self.last = block.get("id", self.last)
                block = {}


async def test_a_connection_that_is_cut_goes_on_where_it_was(tmp_path: Path) -> None:
    """Cut three times, the task going on meanwhile: every line once, in order."""
    writer, listener = Writer(tmp_path), Listener()
    writer.say(opening())
    async with page_of(tmp_path) as page:
        await listener.listen(page, 3)
        writer.say(first_round())
        await listener.listen(page, 9)
        writer.say(second_round())
        writer.say(holds())
        await listener.listen(page, writer.count)
    assert listener.seen == list(range(writer.count))


async def test_a_server_that_was_started_again(tmp_path: Path) -> None:
    """Same port, same cookie, the log in several parts: the page goes on."""
    writer, listener = Writer(tmp_path, limits=LogLimits(part=4_000)), Listener()
    writer.say(opening())
    async with page_of(tmp_path) as page:
        await listener.listen(page, 4)
        jar, port = page.client.cookie_jar, page.port
        writer.say(first_round())
        kept = list(jar)
    async with page_of(tmp_path, port=port, enter=False) as page:
        page.client.cookie_jar.update_cookies({each.key: each.value for each in kept}, URL(page.address))
        await listener.listen(page, writer.count)
    assert listener.seen == list(range(writer.count))
    assert len(list(writer.directory.glob("log*.jsonl"))) > 1


async def test_who_is_far_behind_is_told_how_much_there_is(tmp_path: Path) -> None:
    """Ten thousand lines arrive as ranges, whose rows are fetched when they are looked at."""
    writer, listener = Writer(tmp_path), Listener()
    writer.say(crowd(10_000))
    async with page_of(tmp_path) as page:
        await listener.listen(page, writer.count)
        async with page.client.get(f"{page.address}/tasks/{TASK}/rows?view=all&first=9000&count=3") as answer:
            assert [row["n"] for row in (await answer.json())["rows"]] == [9000, 9001, 9002]
    assert listener.seen == list(range(writer.count))


async def test_a_page_that_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    """One connection reads nothing; the task is written, and another page sees all of it."""
    writer, listener = Writer(tmp_path), Listener()
    writer.say(opening())
    async with page_of(tmp_path) as page, page.client.get(f"{page.address}/tasks/{TASK}/stream?after=-1"):
        for _ in range(20):
            writer.say(first_round())
            await asyncio.sleep(0)
        await listener.listen(page, writer.count)
    assert listener.seen == list(range(writer.count))


class Counting(ThreadPoolExecutor):
    """The loop's own threads, with a count of what they were given."""

    given = 0

    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Future[object]:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.given += 1
        return super().submit(fn, *args, **kwargs)


async def test_ten_pages_have_one_thread_read_the_log(tmp_path: Path) -> None:
    """What reading takes for a moment stays with its thread, so there is one, however many pages look."""
    writer, listeners = Writer(tmp_path), [Listener() for _ in range(10)]
    writer.say(opening())
    async with page_of(tmp_path) as page:
        threads = Counting(4)
        asyncio.get_running_loop().set_default_executor(threads)
        async with asyncio.TaskGroup() as group:
            for listener in listeners:
                group.create_task(listener.listen(page, 40))
            for _ in range(20):
                writer.say(first_round())
                await asyncio.sleep(0.01)
        readers = [one for one in threading.enumerate() if one.name.startswith("artoo-page-reader")]
        assert len(readers) == 1 and threads.given == 0
        assert all(one.seen[:40] == list(range(40)) for one in listeners)


async def test_a_log_that_is_followed_is_read_once(tmp_path: Path) -> None:
    """However many others are looked at meanwhile: begun anew for each look, it would never come to its end."""
    indexes = Indexes()
    followed = indexes.of(tmp_path / "followed")
    for number in range(MOST_OPEN + 1):
        indexes.of(tmp_path / str(number))
    assert indexes.of(tmp_path / "followed") is followed
    indexes.close()
