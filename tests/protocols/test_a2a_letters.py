"""Letters to a foreign agent that hiccups, answers nonsense, says nothing, or is away: each letter is answered."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from foreign import PATIENCE, PEER, prepare
from hosting import Place

from artoo.contracts.agents import OPERATOR
from artoo.protocols.a2a.colleagues import TRIES, Colleague
from artoo.protocols.a2a.following import Following
from artoo.redaction import Redactor
from artoo.team.office import Office, open_office
from artoo.testing import FakeClock

URL = "http://127.0.0.1:1"
GONE = {"code": -32_001, "message": "no such task"}
CARD: dict[str, Any] = {
    "name": "weather",
    "description": "Weather.",
    "version": "1",
    "supportedInterfaces": [{"url": f"{URL}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    "capabilities": {},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [],
}

Answer = Callable[[str], object]
"""What the foreign agent answers to a method: the result of a call, a text as it is, or an error to raise."""


def _task(state: str, *artifacts: dict[str, object]) -> dict[str, object]:
    return {"id": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}, "artifacts": artifacts}


def _rain() -> dict[str, object]:
    return _task("COMPLETED", {"artifactId": "a", "parts": [{"text": "rain"}]})


def _stranger(answer: Answer) -> Callable[[object], object]:
    """In the place of what leads outward."""

    def handle(request: httpx.Request) -> httpx.Response:
        method = "card" if "agent-card" in request.url.path else str(json.loads(request.content)["method"])
        given = answer(method)
        if isinstance(given, Exception):
            raise given
        if method == "card" and not isinstance(given, str):
            given = json.dumps(CARD)
        if not isinstance(given, str):
            fields: dict[str, object] = {"jsonrpc": "2.0", "id": json.loads(request.content)["id"]}
            fields["error" if method == "GetTask" and given == GONE else "result"] = given
            given = json.dumps(fields)
        return httpx.Response(200, text=given, headers={"content-type": "application/json"})

    @asynccontextmanager
    async def outward(permits: object) -> AsyncGenerator[httpx.AsyncClient]:
        async with httpx.AsyncClient(transport=httpx.MockTransport(handle)) as client:
            yield client

    return outward


@pytest.fixture
async def office(tmp_path: Path) -> AsyncGenerator[Office]:
    """One whose time does not pass while a letter is carried."""
    policy = {"a2a": {"peers": {"weather": {**PEER, "url": URL}}}}
    async with open_office(await prepare(Place(tmp_path, ""), policy, {})) as opened:
        yield dataclasses.replace(opened, clock=FakeClock(auto_advance=True))


async def _answered(office: Office, answer: Answer, monkeypatch: pytest.MonkeyPatch) -> str:
    """Sends a letter; what comes back."""
    monkeypatch.setattr("artoo.protocols.a2a.colleagues.outward", _stranger(answer))
    following = Following(office, Redactor(()))
    colleague = Colleague("weather", office.config.a2a.peers["weather"], following)
    mail = await office.mailbox.send(OPERATOR, "a2a:weather", "will it rain?")
    carrying = asyncio.create_task(colleague.run())
    try:
        return await _reply(office, mail.id, carrying)
    finally:
        carrying.cancel()
        await asyncio.wait({carrying})


async def _reply(office: Office, mail_id: str, carrying: asyncio.Task[None]) -> str:
    async with asyncio.timeout(PATIENCE):
        while not carrying.done():
            for kept in await office.mailbox.list(OPERATOR, "inbox"):
                if kept.mail.in_reply_to == mail_id:
                    return kept.mail.text
            await asyncio.wait({asyncio.ensure_future(asyncio.sleep(0.01))})
    raise AssertionError(f"nobody carries any more: {carrying.exception()!r}")


async def test_away_after_it_has_the_letter(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign agent that is away for half an hour while it works is waited for."""
    begun: list[float] = []

    def answer(method: str) -> object:
        if method == "SendMessage":
            return {"task": _task("SUBMITTED")}
        if method == "GetTask":
            begun.append(office.clock.monotonic())
        away = bool(begun) and office.clock.monotonic() < begun[0] + 1_800
        return httpx.ConnectError("away") if away else _rain()

    assert await _answered(office, answer, monkeypatch) == "rain"


async def test_one_that_was_never_there(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign agent that cannot be reached is tried a few times, and the sender is told so."""
    tried: list[str] = []

    def answer(method: str) -> object:
        tried.append(method)
        return httpx.ConnectError("nobody is there")

    assert "no answer came from weather" in await _answered(office, answer, monkeypatch)
    assert tried == ["card"] * TRIES
