"""The real server over a home of the tests, and a client that keeps a cookie as a browser does."""

from __future__ import annotations

import asyncio
import html
import re
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import aiohttp

from artoo.contracts.settling import ApplyMode
from artoo.ports.printing import OnOutput
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.approvals.prompt_store import TaskDesk
from artoo.runtime.config.model import Config
from artoo.testing import ScriptedModel
from artoo.web.serving import bound, served
from artoo.web.site import Site
from artoo.web.starting import Starter, nobody_here

PATIENCE = 120
"""Seconds until a state that does not come is a failing test: for a busy machine."""


@dataclass(frozen=True, slots=True)
class Page:
    """A server that answers. `client` has entered; `address` has no slash at its end."""

    address: str
    token: str
    client: aiohttp.ClientSession
    port: int

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Status and text of a page."""
        async with self.client.get(self.address + path, headers=headers) as answer:
            return answer.status, await answer.text()

    async def post(self, path: str, *fields: tuple[str, str], origin: str | None = None) -> tuple[int, str]:
        """Sends a form as the page itself would; the answer is that of the page that it leads to."""
        headers = {"origin": origin if origin is not None else self.address}
        async with self.client.post(self.address + path, data=list(fields), headers=headers) as answer:
            return answer.status, await answer.text()

    async def until(self, path: str, words: str) -> str:
        """The text of a page as soon as it says this."""
        text = ""
        try:
            async with asyncio.timeout(PATIENCE):
                while words not in text:
                    _, text = await self.get(path)
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise AssertionError(f"{path} never said {words!r}: {text}") from None
        return text

    async def begin(self, text: str, project: Path) -> str:
        """A task that the page's own form begins; its id."""
        fields = (("text", text), ("project", str(project)), ("apply", ApplyMode.NEW.value))
        status, answer = await self.post("/tasks", *fields)
        assert status == 200, answer
        found = re.search(r"/tasks/([0-9a-f-]{36})/stream", answer)
        assert found is not None, answer
        return found[1]


def hidden(text: str, name: str) -> str:
    """A hidden field of a form."""
    found = re.search(f'name="{name}" value="([^"]*)"', text)
    assert found is not None, name
    return html.unescape(found[1])


def site_at(home: Path) -> Site:
    """What the page of this home is made of; nothing of it is started."""
    config = Config(workspace=home / "workspace").at_home(home)
    return Site(
        config, home, Starter(lambda heard: Artoo(config, environ={}, confirm=nobody_here, on_output=heard))
    )


@asynccontextmanager
async def page_of(
    home: Path,
    *,
    model: ScriptedModel | None = None,
    port: int | None = 0,
    project: Path | None = None,
    enter: bool = True,
    listening: socket.socket | None = None,
    store: str | None = None,
) -> AsyncGenerator[Page]:
    """The page of this home, entered. `model` does what is begun in the page; `store` is one that is shared."""
    config = Config(workspace=home / "workspace", store=store).at_home(home)
    listening = listening or bound(port)

    def runtime(heard: OnOutput) -> Artoo:
        return Artoo(config, environ={}, model=model, confirm=nobody_here, on_output=heard)

    jar = aiohttp.CookieJar(unsafe=True)  # cookies of addresses made of numbers too
    async with (
        served(config, project or home, runtime, listening) as serving,
        aiohttp.ClientSession(cookie_jar=jar) as client,
    ):
        parts = urlsplit(serving.address)
        token = parse_qs(parts.query)["token"][0]
        address = f"{parts.scheme}://{parts.netloc}"
        try:
            if enter:
                async with client.get(serving.address) as answer:
                    assert answer.status == 200, await answer.text()
            yield Page(address, token, client, parts.port or 0)
        finally:
            serving.stop()


async def stop_wanted(home: Path, task_id: str) -> None:
    """Returns when somebody has asked a task to stop."""
    async with asyncio.timeout(PATIENCE):
        while not TaskDesk(home, task_id).stop_wanted():  # noqa: ASYNC110 (a file)
            await asyncio.sleep(0.05)
