"""The model of one task: a scripted one, or a real endpoint behind a counter of calls and tokens."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
import orjson
from aiohttp import web

from artoo.llm.prompt import estimated_tokens
from artoo.testing import ScriptedServer
from artoo.testing.script import ScriptError
from bench.scripted import Player

_KEY = "bench"
_BODY_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class Counted:
    """The calls of a task to its model. `uncached` tokens share no beginning with an earlier prompt."""

    calls: int = 0
    prompt: int = 0
    uncached: int = 0
    answered: int = 0
    failed: list[str] = field(default_factory=list[str])
    _earlier: list[str] = field(default_factory=list[str])

    def add(self, body: Mapping[str, Any], answer: str) -> None:
        """Count one call by its texts, as a rule of thumb counts tokens, the same for every agent."""
        prompt = orjson.dumps([body.get("tools"), body.get("messages")]).decode()
        shared = max((_shared(prompt, one) for one in self._earlier), default=0)
        self._earlier.append(prompt)
        self.calls += 1
        self.prompt += estimated_tokens(prompt)
        self.uncached += estimated_tokens(prompt[shared:])
        self.answered += estimated_tokens(answer)

    def shown(self, secrets: Iterable[str]) -> Iterator[str]:
        """Yield the secrets that were in a prompt."""
        return (secret for secret in secrets if any(secret in prompt for prompt in self._earlier))


def _shared(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one.startswith(other[:middle]) else (low, middle - 1)
    return low


@asynccontextmanager
async def scripted(player: Player, counted: Counted) -> AsyncGenerator[Mapping[str, str]]:
    """Serve a scripted model; give the variables that name it. What it had no answer for is in `counted.failed`."""
    server = ScriptedServer(player)
    try:
        async with server:
            yield _named(server.base_url, "scripted")
    except ScriptError as error:
        counted.failed.append(str(error))
    for asked in server.player.requests:
        counted.add(asked.body, "")
    counted.failed += player.unplayed


@asynccontextmanager
async def counting(endpoint: str, model: str, key: str, counted: Counted) -> AsyncGenerator[Mapping[str, str]]:
    """Stand between an agent and a real OpenAI-compatible endpoint, and count; streams are passed on whole."""
    patient = aiohttp.ClientTimeout(total=None)  # the agent that asks has a limit of its own
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}, timeout=patient) as session:

        async def passed_on(request: web.Request) -> web.Response:
            raw = await request.read()
            url = endpoint.removesuffix("/v1") + request.path
            async with session.request(request.method, url, data=raw or None, headers=_JSON) as answer:
                data = await answer.read()
                if request.method == "POST":
                    counted.add(cast("Mapping[str, Any]", orjson.loads(raw)), data.decode("utf-8", "replace"))
                return web.Response(
                    body=data,
                    status=answer.status,
                    headers={"Content-Type": answer.headers.get("Content-Type", "")},
                )

        app = web.Application(client_max_size=_BODY_BYTES)
        app.router.add_route("*", "/v1/{rest:.*}", passed_on)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield _named(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", model)
        finally:
            await runner.cleanup()


_JSON = {"Content-Type": "application/json"}


def _named(address: str, model: str) -> Mapping[str, str]:
    return {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": _KEY, "OPENAI_MODEL": model}
