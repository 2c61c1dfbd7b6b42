"""Push notifications: told of every change, over a crash too, and only where the operator's policy lets them go."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from a2a.types import TaskPushNotificationConfig
from a2a.utils.errors import A2AError
from foreign import PATIENCE, PEER, client_of, hosted, message, started
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from artoo.contracts.errors import ForeignRefused
from artoo.protocols.a2a.outward import check, outward, permits_of
from artoo.protocols.http import LoopbackServer
from artoo.sandbox.network.allowlist import Address, Destination


class Hook:
    """Keeps what it is told; answers `codes` one after the other, then 200."""

    def __init__(self, codes: list[int]) -> None:
        self.codes = codes
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.changed = asyncio.Condition()

    async def take(self, request: Request) -> Response:
        async with self.changed:
            code = self.codes.pop(0) if self.codes else 200
            if code == 200:
                self.told.append((request.headers.get("x-a2a-notification-token", ""), await request.json()))
            self.changed.notify_all()
        return Response(status_code=code, headers={"location": "http://127.0.0.1:1/"})

    async def until(self, state: str) -> None:
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(lambda: state in self.states)

    @property
    def states(self) -> list[str]:
        return [told["task"]["status"]["state"].removeprefix("TASK_STATE_").lower() for _, told in self.told]


@asynccontextmanager
async def hooked(*codes: int) -> AsyncGenerator[tuple[Hook, int]]:
    """A target on loopback, and its port."""
    hook, listening = Hook(list(codes)), socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(Starlette(routes=[Route("/hook", hook.take, methods=["POST"])]), log_level="error")
    server = LoopbackServer(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield hook, listening.getsockname()[1]
    finally:
        server.should_exit = True
        await serving


def _target(port: int) -> TaskPushNotificationConfig:
    return TaskPushNotificationConfig(url=f"http://127.0.0.1:{port}/hook", token="secret", id="one")


async def test_told_to_the_end(tmp_path: Path) -> None:
    """A target that the policy names is told of the work and of the end, with its token, the result, and after
    calls that failed; a redirect is not followed."""
    async with (
        hooked(500, 307) as (hook, port),
        hosted(tmp_path, {"partner": PEER}, allow=[f"network 127.0.0.1:{port}"]) as place,
        started(place) as served,
        client_of(served) as client,
    ):
        request = message("make p1.txt", "m1", return_immediately=True, task_push_notification_config=_target(port))
        await anext(client.send_message(request))
        await hook.until("completed")
    token, told = hook.told[-1]
    assert token == "secret"
    assert told["task"]["artifacts"][0]["parts"][0]["text"]


async def test_nothing_private_unless_named(tmp_path: Path) -> None:
    """A target on this machine that no permission names is refused, and the task is not begun."""
    async with (
        hooked() as (hook, port),
        hosted(tmp_path) as place,
        started(place) as served,
        client_of(served) as client,
    ):
        request = message("make p3.txt", "m1", task_push_notification_config=_target(port))
        with pytest.raises(A2AError, match="not encrypted"):
            await anext(client.send_message(request))
    assert hook.told == []


@pytest.mark.parametrize(
    "address",
    (
        *("127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "::"),
        *("::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
    ),
)
async def test_a_name_that_leads_inside(address: str) -> None:
    """A public name whose address is not public is refused, at the look and at the connection."""

    async def resolve(goal: Destination) -> tuple[Address, ...]:
        return (ip_address(address),)

    with pytest.raises(ForeignRefused):
        await check("https://hooks.example.org/x", permits_of(()), resolve)
    async with outward(permits_of(()), resolve) as client:
        with pytest.raises(Exception, match="may not be reached"):
            await client.post("https://hooks.example.org/x")


async def test_the_connection_is_the_judged_one() -> None:
    """The connection goes to the address that was judged, under the name that was asked for; loopback only when a
    permission names the address itself."""

    async def loopback(goal: Destination) -> tuple[Address, ...]:
        return (ip_address("127.0.0.1"),)

    async with hooked() as (hook, port):
        url, named = f"http://hooks.example.org:{port}/hook", f"network hooks.example.org:{port}"
        async with outward(permits_of([named, f"network 127.0.0.1:{port}"]), loopback) as client:
            answer = await client.post(url, json={"task": {"status": {"state": "x"}}})
        assert answer.status_code == 200
        assert answer.request.headers["host"] == f"hooks.example.org:{port}"
        async with outward(permits_of([named]), loopback) as client:
            with pytest.raises(Exception, match="may not be reached"):
                await client.post(url, json={})
        assert len(hook.told) == 1
