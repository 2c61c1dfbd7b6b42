"""`web_search`: results are counted, and being offline is an error, not an empty answer."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import subprocess
import sys
from collections.abc import Sequence

import pytest
from aiohttp import web
from tool_doubles import StillClock, said

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.plan import MustNot
from artoo.tools.builtin.web_search import MOST_RESULTS, Engine, Google, Hit, Search, duckduckgo
from artoo.tools.core.registry import Registry


async def searched(engine: Engine, query: str = "what  is it") -> ToolCall:
    box = Registry([Search(engine)], StillClock()).toolbox("s", MustNot())
    return await box.call("web_search", {"query": query})


async def test_results_are_listed_and_counted() -> None:
    """Title, address and text of each result, at most eight, with the normalised query as target."""

    async def engine(query: str) -> Sequence[Hit]:
        return [Hit(f"T{number}", f"https://x.example/{number}", query) for number in range(20)]

    call = await searched(engine)
    assert (call.status, call.result_count, call.target) == (CallStatus.OK, MOST_RESULTS, "what is it")
    assert "T0\nhttps://x.example/0\nwhat is it" in call.output


async def test_offline_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network the record says so in words."""
    monkeypatch.setenv("DDGS_PROXY", "http://127.0.0.1:9")
    call = await searched(duckduckgo)
    assert call.status is CallStatus.ERROR
    assert "is this computer online?" in said(call)
    call = await searched(Google("key", "cx", "http://127.0.0.1:9/").search)
    assert call.status is CallStatus.ERROR
    assert "is this computer online?" in said(call)
    assert "key" not in said(call)


async def test_a_search_that_takes_too_much_memory_ends_as_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library runs in a process that the kernel keeps small: what it would unpack beyond that ends it alone."""
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(ToolError, match="ended without an answer"):
        await duckduckgo("anything")
    monkeypatch.undo()
    greedy = "from artoo.tools.builtin.duckduckgo import keep_small; keep_small(); bytearray(1 << 30)"
    done = await asyncio.to_thread(
        subprocess.run, (sys.executable, "-P", "-c", greedy), capture_output=True, check=False
    )
    assert b"MemoryError" in done.stderr


async def test_google_when_its_key_is_set() -> None:
    """With key and engine in the environment Google is asked, the key is in no address, its answers are bounded."""
    asked: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request)
        if request.query["q"] == "too much":
            return web.Response(status=429)
        if request.query["q"] == "packed":
            return web.Response(body=gzip.compress(bytes(64 << 20)), headers={"Content-Encoding": "gzip"})
        if request.query["q"] in ("odd", "deep"):
            return web.Response(text="<html>" if request.query["q"] == "odd" else "[" * 100_000)
        return web.json_response({"items": [{"title": "T", "link": "https://x.example", "snippet": "S"}]})

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        engine = Google("s3cret", "my-engine", f"http://127.0.0.1:{runner.addresses[0][1]}/").search
        assert list(await engine("q")) == [Hit("T", "https://x.example", "S")]
        assert (asked[0].query["cx"], "s3cret" in str(asked[0].url)) == ("my-engine", False)
        for query, problem in (
            ("too much", "HTTP 429"),
            ("odd", "no JSON"),
            ("deep", "no JSON"),
            ("packed", "more than"),
        ):
            with pytest.raises(ToolError, match=problem):
                await engine(query)
    finally:
        await runner.cleanup()
