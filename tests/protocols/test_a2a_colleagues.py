"""A foreign agent as a colleague: letters go out to it once, and its answers come back as letters."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, Message, Part, Role, Task, TaskState, TaskStatus
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from foreign import PATIENCE, PEER, Served, books, hosted, started
from starlette.applications import Starlette

from artoo.contracts.agents import OPERATOR
from artoo.protocols.a2a.card import Signer, own_signer
from artoo.protocols.http import LoopbackServer
from artoo.team.office import Office


@dataclass(slots=True)
class Weather(AgentExecutor):
    """An agent of the SDK's own. `held`: it answers only when this is set."""

    heard: list[str] = field(default_factory=list[str])
    held: asyncio.Event = field(default_factory=asyncio.Event)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text, task_id, context_id = context.get_user_input(), context.task_id or "", context.context_id or ""
        self.heard.append(text)
        if text == "hello":
            said = Message(message_id="a", role=Role.ROLE_AGENT, parts=[Part(text="good day")])
            await event_queue.enqueue_event(said)
            return
        status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
        await event_queue.enqueue_event(Task(id=task_id, context_id=context_id, status=status))
        updater = TaskUpdater(event_queue, task_id, context_id)
        await updater.start_work()
        await self.held.wait()
        if text == "fail":
            await updater.failed()
            return
        await updater.add_artifact([Part(text=f"{text}: rain")])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise AssertionError("nobody cancels")


@asynccontextmanager
async def weather(elsewhere: str = "", signer: Signer | None = None) -> AsyncGenerator[tuple[Weather, str]]:
    """It, and its address. `elsewhere`: where its card says that it is; `signer`: whose signature the card has."""
    agent, listening = Weather(), socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    at = AgentInterface(url=(elsewhere or url) + "/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
    card = AgentCard(
        name="weather",
        description="Weather.",
        version="1",
        supported_interfaces=[at],
        capabilities=AgentCapabilities(),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
    )
    if signer is not None:
        signer.sign(card, url)
    handler = DefaultRequestHandler(agent, InMemoryTaskStore(), card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")]
    server = LoopbackServer(uvicorn.Config(Starlette(routes=routes), log_level="error"))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield agent, url
    finally:
        agent.held.set()
        server.should_exit = True
        await serving


async def _answer(office: Office, mail_id: str) -> str:
    async with asyncio.timeout(PATIENCE), office.wake.watching() as following:
        while True:
            for kept in await office.mailbox.list(OPERATOR, "inbox"):
                if kept.mail.in_reply_to == mail_id:
                    return f"{kept.mail.sender}: {kept.mail.text}"
            await following(1.0)


def _peers(url: str) -> dict[str, object]:
    return {"weather": {**PEER, "url": url}}


async def test_letters_and_answers(tmp_path: Path) -> None:
    """A message, a task with a result and one that fails are each answered by a letter that says so."""
    async with (
        weather() as (agent, url),
        hosted(tmp_path, _peers(url)) as place,
        started(place),
        books(place) as office,
    ):
        agent.held.set()
        for text, said in (("hello", "good day"), ("tomorrow", "tomorrow: rain"), ("fail", "[artoo: failed]")):
            mail = await office.mailbox.send(OPERATOR, "a2a:weather", text)
            assert await _answer(office, mail.id) == f"a2a:weather: {said}"
        assert agent.heard == ["hello", "tomorrow", "fail"]


async def _heard(agent: Weather, served: Served) -> None:
    async with asyncio.timeout(PATIENCE):
        while not agent.heard:
            await asyncio.wait({asyncio.ensure_future(asyncio.sleep(0.05))})
    assert served.process.returncode is None


async def test_a_crash_while_it_is_away(tmp_path: Path) -> None:
    """Killed while the foreign agent works: its answer comes with the next process, and it was asked once."""
    async with weather() as (agent, url), hosted(tmp_path, _peers(url)) as place, books(place) as office:
        async with started(place) as served:
            mail = await office.mailbox.send(OPERATOR, "a2a:weather", "tomorrow")
            await _heard(agent, served)
            async with asyncio.timeout(PATIENCE), office.wake.watching() as following:
                while not await office.foreign_post.task_of(mail.id):
                    await following(1.0)
            await served.killed()
        agent.held.set()
        async with started(place):
            assert await _answer(office, mail.id) == "a2a:weather: tomorrow: rain"
        assert agent.heard == ["tomorrow"]


async def test_a_card_that_leads_elsewhere(tmp_path: Path) -> None:
    """A card that leads to another host gets neither the letter nor the token, and the sender is told."""
    async with weather() as (other, target), weather(target) as (agent, url):
        async with hosted(tmp_path, _peers(url)) as place, started(place), books(place) as office:
            mail = await office.mailbox.send(OPERATOR, "a2a:weather", "hello")
            assert "leads to another host" in await _answer(office, mail.id)
        assert other.heard == agent.heard == []


@pytest.mark.parametrize("form", ["a JWK set", pytest.param("a PEM", marks=pytest.mark.torture)])
async def test_a_card_that_must_be_signed(tmp_path: Path, form: str) -> None:
    """With keys in the policy, a card that one of them has signed is believed; another's, and none, is not."""
    theirs, others = own_signer(tmp_path / "theirs"), own_signer(tmp_path / "others")
    keys = tmp_path / "keys"
    if form == "a PEM":
        public = load_pem_private_key(theirs.pem, None).public_key()
        keys.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    else:
        keys.write_text(json.dumps(theirs.keys))
    for number, (signer, said) in enumerate(((theirs, "good day"), (others, "not signed"), (None, "not signed"))):
        async with weather(signer=signer) as (agent, url):
            peers = {"weather": {**PEER, "url": url, "keys": str(keys)}}
            async with hosted(tmp_path / f"{number}", peers) as place, started(place), books(place) as office:
                mail = await office.mailbox.send(OPERATOR, "a2a:weather", "hello")
                assert said in await _answer(office, mail.id)
            assert agent.heard == (["hello"] if signer is theirs else [])
