"""Send A2A push notifications at least once, with the retry delays and the token header.

For each target, the position up to which it was notified is stored. If a delivery fails, it is retried a few times.
Each time the present state of the task is sent. After the last retry, nothing is sent until the task changes again.
A target never waits for another one.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from dataclasses import dataclass, field

import httpx
from a2a.types import StreamResponse, TaskPushNotificationConfig
from google.protobuf.json_format import MessageToDict, MessageToJson, Parse, ParseError

from artoo.agents.foreign.foreign_tasks import ForeignTask
from artoo.agents.foreign.push_targets import Target
from artoo.contracts.errors import ForeignRefused
from artoo.ports.clock import Clock
from artoo.protocols.a2a.following import LOOK_SECONDS, Following
from artoo.protocols.a2a.outward import SECONDS, check
from artoo.protocols.a2a.states import task_of
from artoo.sandbox.network.allowlist import Permits

logger = logging.getLogger(__name__)

RETRY_SECONDS = (1.0, 4.0, 16.0, 64.0)
"""Number of seconds before each retry. After the last one, the notification is given up."""
EVER = 1 << 62
"""The position of a target that was notified of the end of its task. Nothing follows after that."""
_LONGEST = {"id": 200, "token": 4_000, "url": 2_000, "authentication": 4_000}
TOKEN_HEADER = "X-A2A-Notification-Token"


@dataclass(slots=True)
class Pushes:
    """The push targets of the tasks of foreign agents. `permits`: the hosts that the operator's policy permits."""

    following: Following
    permits: Permits
    clock: Clock
    _telling: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    async def check(self, wanted: TaskPushNotificationConfig) -> None:
        """Check a target. Raises ForeignRefused if a field is invalid or the address is not permitted."""
        login = wanted.authentication
        for name, given in (
            ("id", wanted.id),
            ("token", wanted.token),
            ("url", wanted.url),
            ("authentication", f"{login.scheme} {login.credentials}"),
        ):
            if len(given) > _LONGEST[name] or not given.isprintable() or not given.isascii():
                raise ForeignRefused(f"{name} of a target has at most {_LONGEST[name]} printable ASCII characters")
        await check(wanted.url, self.permits)

    async def keep(self, wanted: TaskPushNotificationConfig, seen: ForeignTask) -> TaskPushNotificationConfig:
        """Store a target. It is notified of later changes. Raises ForeignRefused."""
        kept = TaskPushNotificationConfig()
        kept.CopyFrom(wanted)
        kept.task_id, kept.id = seen.task.id, wanted.id or str(uuid.uuid4())
        kept.ClearField("tenant")
        await self.following.office.foreign_post.keep(
            Target(seen.task.id, kept.id, MessageToJson(kept, indent=None), seen.position)
        )
        return kept

    async def of(self, task_id: str) -> tuple[TaskPushNotificationConfig, ...]:
        """Return the targets of one task."""
        return tuple(_read(target) for target in await self.following.office.foreign_post.targets(task_id))

    async def forget(self, task_id: str, target_id: str) -> None:
        """Remove a target, which then gets no more notifications."""
        await self.following.office.foreign_post.forget(task_id, target_id)

    async def run(self, client: httpx.AsyncClient) -> None:
        """Notify the targets of every change. This runs until cancelled."""
        post = self.following.office.foreign_post
        async with self.following.office.wake.watching() as following, asyncio.TaskGroup() as group:
            while True:
                for target in await post.due():
                    key = (target.board_task, target.id)
                    # Each target gets only one notification at a time, so that an old state never arrives after a
                    # new one.
                    if key not in self._telling:
                        self._telling.add(key)
                        group.create_task(self._tell(client, target))
                await following(LOOK_SECONDS)

    async def _tell(self, client: httpx.AsyncClient, due: Target) -> None:
        """Notify one target. Retry after each of `RETRY_SECONDS`, and then give up."""
        try:
            problem: str | None = ""
            for pause in (0.0, *RETRY_SECONDS):
                await self.clock.sleep(pause)
                problem = await self._told(client, due)
                if problem is None:
                    return
            logger.warning("task %s: %s is not told of a change: %s", due.board_task, due.id, problem)
            await self._known(due, due.position)
        finally:
            self._telling.discard((due.board_task, due.id))

    async def _told(self, client: httpx.AsyncClient, due: Target) -> str | None:
        """Send the state of the task to a target. Return the error. Return None if the state was sent or need not
        be sent any more."""
        post = self.following.office.foreign_post
        kept = next((one for one in await post.targets(due.board_task) if one.id == due.id), None)
        if kept is None:
            return None
        seen = await self.following.office.foreign.seen(due.board_task)
        if seen is None:
            await self._known(due, EVER)
            return None
        try:
            request = await self._request(client, kept, seen)
        except (ValueError, httpx.InvalidURL) as error:
            # The stored target is invalid, so it can never be notified.
            logger.warning("task %s: %s is forgotten: %s", due.board_task, due.id, error)
            await post.forget(due.board_task, due.id)
            return None
        problem = await _sent(client, request)
        if problem is None:
            await self._known(due, EVER if seen.ended is not None else max(due.position, seen.position))
        return problem

    async def _known(self, target: Target, position: int) -> None:
        told = Target(target.board_task, target.id, target.text, target.told, position)
        await self.following.office.foreign_post.told(told)

    async def _request(self, client: httpx.AsyncClient, target: Target, seen: ForeignTask) -> httpx.Request:
        """Build the request that sends the task's state to a target. Raises ValueError, or httpx.InvalidURL."""
        config = _read(target)
        headers = {TOKEN_HEADER: config.token} if config.token else {}
        if config.authentication.scheme and config.authentication.credentials:
            headers["Authorization"] = f"{config.authentication.scheme} {config.authentication.credentials}"
        body = StreamResponse(task=task_of(seen, await self.following.result(seen), 0))
        return client.build_request("POST", config.url, json=MessageToDict(body), headers=headers)


async def _sent(client: httpx.AsyncClient, request: httpx.Request) -> str | None:
    """Send a request. Return the error. Return None if the response reports success."""
    try:
        # The timeout of httpx begins again with every byte, so it does not limit the whole request.
        async with asyncio.timeout(SECONDS):
            response = await client.send(request, stream=True)
            await response.aclose()
    except (httpx.HTTPError, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"
    return None if response.is_success else f"it answers {response.status_code}"


def _read(target: Target) -> TaskPushNotificationConfig:
    try:
        return Parse(target.text, TaskPushNotificationConfig(), ignore_unknown_fields=True)
    except ParseError:
        logger.warning("the target %s of task %s cannot be read", target.id, target.board_task)
        return TaskPushNotificationConfig(id=target.id, task_id=target.board_task)
