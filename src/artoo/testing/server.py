"""`ScriptedServer`, an OpenAI-compatible HTTP server that plays a script."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from types import TracebackType
from typing import cast

import orjson
from aiohttp import web

from artoo.llm import guard
from artoo.llm.transport import Json
from artoo.testing.replies import Ending, Reply
from artoo.testing.script import Script, ScriptPlayer
from artoo.testing.scripted_model import complain, models_body, reply_body
from artoo.testing.turns import chunks, is_streamed


class ScriptedServer:
    """An OpenAI-compatible server on 127.0.0.1 that plays a script (described in ScriptPlayer).

    Use it in an `async with` block. At the end of the block, it stops the server and raises ScriptError if there
    are unused entries or requests without a script. `owned_by` is the value that GET /models returns ("llamacpp"
    means llama.cpp). If `api_key` is given, requests must contain it. `most_at_once` is the largest number of
    requests that were open at the same time.
    """

    def __init__(
        self,
        script: Script,
        *,
        refuse: Collection[str] = (),
        owned_by: str = "scripted",
        api_key: str | None = None,
    ) -> None:
        self.player = ScriptPlayer(script, refuse=refuse)
        self.headers: list[dict[str, str]] = []
        self.model_lists = 0
        self.most_at_once = 0
        self._owned_by = owned_by
        self._api_key = api_key
        self._now = 0
        self._peers: set[object] = set()
        self._runner: web.AppRunner | None = None
        self._stopping = asyncio.Event()
        self._base_url = ""

    @property
    def base_url(self) -> str:
        """Return the address that has to be configured: `http://127.0.0.1:PORT/v1`."""
        return self._base_url

    @property
    def connections(self) -> int:
        """Return the number of connections that clients have made for completions."""
        return len(self._peers)

    async def __aenter__(self) -> ScriptedServer:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        # Tests forbid real endpoints, so this address is added to those that are permitted.
        guard.admit(self._base_url)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        guard.retract(self._base_url)
        if self._runner is not None:
            await self._runner.cleanup()
        complain(self.player, error)

    async def _models(self, request: web.Request) -> web.Response:
        self.model_lists += 1
        return web.json_response(models_body(self._owned_by))

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self._now += 1
        if request.transport is not None:
            self._peers.add(request.transport.get_extra_info("peername"))
        self.most_at_once = max(self.most_at_once, self._now)
        try:
            return await self._play(request)
        finally:
            self._now -= 1

    async def _play(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self._api_key and request.headers.get("Authorization") != f"Bearer {self._api_key}":
            refusal = Reply(status=401, error="invalid API key")
            return web.json_response(reply_body(refusal, {}), status=401)
        asked = cast(dict[str, Json], orjson.loads(raw))
        reply, usage = self.player.reply_to(asked)
        if reply.delay:
            await self._pause(reply.delay)
        whole = reply_body(reply, usage)
        if is_streamed(reply, asked):
            return await self._stream(request, chunks(whole), reply)
        body = orjson.dumps(whole)
        if reply.ending is Ending.WHOLE:
            headers = {"Content-Type": "application/json", **reply.headers}
            return web.Response(body=body, status=reply.status, headers=headers)
        return await self._break_off(request, body if reply.ending is Ending.CUT else b"")

    async def _stream(
        self, request: web.Request, events: list[dict[str, object]], reply: Reply
    ) -> web.StreamResponse:
        """Send the events of a stream. If the reply breaks off, send half of them and drop the connection."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **reply.headers})
        await response.prepare(request)
        broken = reply.ending is Ending.CUT
        for event in events[: len(events) // 2] if broken else events:
            await response.write(b"data: " + orjson.dumps(event) + b"\n\n")
        if not broken:
            await response.write(b"data: [DONE]\n\n")
        elif request.transport is not None:
            request.transport.abort()
        return response

    async def _pause(self, seconds: float) -> None:
        """Wait in real time, but only until the server stops."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def _break_off(self, request: web.Request, body: bytes) -> web.StreamResponse:
        """Announce the length of the whole body, send half of it and drop the connection."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        # The announced length is one byte too long. So the client waits for this byte and sees that the connection
        # is dropped.
        response.content_length = len(body) + 1
        if body:
            await response.prepare(request)
            await response.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.abort()
        return response
