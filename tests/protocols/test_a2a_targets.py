"""Targets of push notifications that cannot be told, hang or are taken away cost themselves, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from a2a.types import TaskPushNotificationConfig
from foreign import PATIENCE, prepare
from google.protobuf.json_format import MessageToJson
from hosting import Place

from artoo.agents.foreign.foreign_tasks import ForeignRequest, ForeignTask
from artoo.agents.foreign.push_targets import Target
from artoo.agents.foreign.settings import Peer
from artoo.contracts.agents import OPERATOR
from artoo.protocols.a2a.following import Following
from artoo.protocols.a2a.outward import permits_of
from artoo.protocols.a2a.push import Pushes
from artoo.redaction import Redactor
from artoo.team.office import Office, open_office


@dataclass(slots=True)
class Web:
    """What targets do by their path: `hang`, `refuse` (until `healed`), or take it. `told`: paths, in order."""

    told: list[str] = field(default_factory=list[str])
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    healed: bool = False

    async def answer(self, request: httpx.Request) -> httpx.Response:
        self.told.append(request.url.path.strip("/"))
        self.changed.set()
        if self.told[-1] == "hang":
            await asyncio.Event().wait()
        return httpx.Response(503 if self.told[-1] == "refuse" and not self.healed else 200)

    async def until(self, so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not so():
                await self.changed.wait()
                self.changed.clear()


@dataclass(frozen=True, slots=True)
class Desk:
    """The books with one foreign task, and what tells its targets."""

    office: Office
    pushes: Pushes
    web: Web
    task: ForeignTask

    async def keep(self, name: str, credentials: str = "") -> None:
        """Past what is checked, as an earlier version may have kept it."""
        config = TaskPushNotificationConfig(id=name, task_id=self.task.task.id, url=f"https://bob.example/{name}")
        if credentials:
            config.authentication.scheme, config.authentication.credentials = "Basic", credentials
        await self.office.foreign_post.keep(Target(self.task.task.id, name, MessageToJson(config), 0))

    async def names(self) -> list[str]:
        return [one.id for one in await self.office.foreign_post.targets(self.task.task.id)]

    @asynccontextmanager
    async def telling(self) -> AsyncGenerator[asyncio.Task[None]]:
        async with httpx.AsyncClient(transport=httpx.MockTransport(self.web.answer)) as client:
            running = asyncio.create_task(self.pushes.run(client))
            yield running
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    place = Place(tmp_path, "")
    async with open_office(await prepare(place, {}, {})) as office:
        task, _ = await office.foreign.accept("bob", ForeignRequest("m1", "c", "count the files"), Peer())
        following = Following(office, Redactor(()))
        yield Desk(office, Pushes(following, permits_of(()), office.clock), Web(), task)


async def test_one_that_hangs_holds_up_no_other(desk: Desk) -> None:
    """A target that takes a connection and says nothing leaves the others their news."""
    await desk.keep("hang")
    await desk.keep("quick")
    async with desk.telling():
        await desk.web.until(lambda: "quick" in desk.web.told)
        await desk.office.board.cancel(desk.task.task.id, OPERATOR)
        await desk.web.until(lambda: desk.web.told.count("quick") == 2)
    assert desk.web.told.count("hang") == 1
