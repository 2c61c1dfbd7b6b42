"""Events by their place in the log: none is lost and none comes twice, whatever becomes of the connection."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import orjson
import pytest
from web_scenes import TASK, Writer, crowd, first_round, holds, opening, second_round
from web_server import Page, page_of
from yarl import URL

from artoo.tasklog.layout import LogLimits


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


@pytest.mark.torture
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
