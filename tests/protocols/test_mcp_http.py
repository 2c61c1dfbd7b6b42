"""MCP by HTTP: on loopback, for whoever has the token, and for no page of a browser."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import pytest
from hosting import EDIT, Place
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from raw_client import INITIALIZE

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"accept": "application/json, text/event-stream"}


@asynccontextmanager
async def served(place: Place) -> AsyncGenerator[tuple[str, str]]:
    """The address and the token of a server of its own."""
    process = await asyncio.create_subprocess_exec(
        *place.command("mcp", "--http", "--port", "0", "--project", str(place.project)),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=place.environ,
    )
    assert process.stderr is not None
    said = (await process.stderr.readline()).decode()
    try:
        yield said.split()[3].rstrip(";"), (place.home / "mcp-token").read_text().strip()
    finally:
        process.terminate()
        assert await process.wait() == 0


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_task_by_http(place: Place, era: str) -> None:
    """The SDK's client with the token runs a task, looks and discards."""
    async with (
        served(place) as (url, token),
        httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=era) as client,
    ):
        ran = await client.call_tool("run", {"request": f"run: {EDIT}"})
        assert not ran.is_error, ran.content
        found = cast("dict[str, Any]", ran.structured_content)
        assert found["status"] == "pending", ran.content
        dropped = await client.call_tool("discard", {"task_id": found["task_id"]})
        assert cast("dict[str, Any]", dropped.structured_content)["state"] == "discarded"
    assert place.text("a.txt") == "old\n"


async def test_who_may_not(place: Place) -> None:
    """No token, a wrong one, another Host, a page's Origin, a body without end: refused, and nothing is begun."""
    async with served(place) as (url, token), httpx2.AsyncClient(headers=ACCEPT, timeout=60) as http:
        known = {"authorization": f"Bearer {token}"}
        for headers, code in (
            ({}, 401),
            ({"authorization": "Bearer wrong"}, 401),
            ({**known, "host": "evil.example"}, 421),
            ({**known, "origin": "http://evil.example"}, 403),
        ):
            assert (await http.post(url, json=PING, headers=headers)).status_code == code
        huge = b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (5 << 20)
        sent = await http.post(url, content=huge, headers={**known, "content-type": "application/json"})
        assert sent.status_code == 413
    mode = stat.S_IMODE((place.home / "mcp-token").stat().st_mode)
    assert mode == 0o600
    assert not list(place.home.glob("tasks/*"))


async def test_a_client_that_drops(place: Place) -> None:
    """A connection that is gone while its call runs ends no task: another client finds it, and can end it."""
    call = {"name": "run", "arguments": {"request": "run: wait"}, "_meta": {"progressToken": 1}}
    async with served(place) as (url, token):
        known = {"authorization": f"Bearer {token}", **ACCEPT}
        async with httpx2.AsyncClient(headers=known, timeout=60) as http:
            greeted = await http.post(url, json=INITIALIZE)
            session = {"mcp-session-id": greeted.headers["mcp-session-id"]}
            await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=session)
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            async with http.stream("POST", url, json=asked, headers=session) as stream:
                async for line in stream.aiter_lines():
                    if "notifications/progress" in line:
                        break
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
        ):
            known_now = await client.call_tool("status", {})
            [task] = cast("dict[str, Any]", known_now.structured_content)["running"]
            running = await client.call_tool("result", {"task_id": task["task_id"], "wait_seconds": 0})
            assert cast("dict[str, Any]", running.structured_content)["status"] == "working", running.content
            await client.call_tool("cancel", {"task_id": task["task_id"]})
            ended = await client.call_tool("result", {"task_id": task["task_id"]})
            assert cast("dict[str, Any]", ended.structured_content)["stopped_by"] == "interrupted", ended.content
