"""Push notifications: each change of a task reaches its targets once or more, also over a crash of this process.

What was told is on disk beside the task. A target that does not answer is tried again a few times, then this change
is given up for it; the next one is tried anew.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, field

import httpx
from a2a.types import StreamResponse, TaskPushNotificationConfig
from google.protobuf.json_format import MessageToDict, MessageToJson, Parse, ParseError

from artoo.agents.foreign import ForeignTask
from artoo.agents.foreign_post import Target
from artoo.contracts.errors import ForeignRefused
from artoo.ports.clock import Clock
from artoo.protocols.a2a.following import LOOK_SECONDS, Following
from artoo.protocols.a2a.outward import check
from artoo.protocols.a2a.states import task_of
from artoo.world.edge.hosts import Permits

logger = logging.getLogger(__name__)

RETRY_SECONDS = (1.0, 4.0, 16.0, 64.0)
"""How long after a failure it is tried again; after the last one it is given up."""
EVER = 1 << 62
"""The position after an end has been told: nothing comes after it."""
_LONGEST = {"id": 200, "token": 4_000, "url": 2_000}
TOKEN_HEADER = "X-A2A-Notification-Token"


@dataclass(slots=True)
class Failing:
    """How often a target did not take the change at `position`, and when it is tried again (monotonic seconds)."""

    position: int
    times: int
    again: float


@dataclass(slots=True)
class Pushes:
    """The targets of foreign agents' tasks. `permits`: what the operator's policy names."""

    following: Following
    permits: Permits
    clock: Clock
    _failing: dict[tuple[str, str], Failing] = field(default_factory=dict[tuple[str, str], Failing])

    async def check(self, wanted: TaskPushNotificationConfig) -> None:
        """Raises ForeignRefused for a target that may not be reached."""
        scheme, credentials = wanted.authentication.scheme, wanted.authentication.credentials
        for name, given in (("id", wanted.id), ("token", wanted.token), ("url", wanted.url)):
            if len(given) > _LONGEST[name] or not given.isprintable() or not given.isascii():
                raise ForeignRefused(f"{name} of a target has at most {_LONGEST[name]} printable ASCII characters")
        if not f"{scheme}{credentials}".isprintable() or len(scheme) + len(credentials) > _LONGEST["token"]:
            raise ForeignRefused("authentication of a target is a scheme and credentials, in printable characters")
        await check(wanted.url, self.permits)

    async def keep(self, wanted: TaskPushNotificationConfig, seen: ForeignTask) -> TaskPushNotificationConfig:
        """Tells this target from now on. Raises ForeignRefused."""
        kept = TaskPushNotificationConfig()
        kept.CopyFrom(wanted)
        kept.task_id, kept.id = seen.task.id, wanted.id or str(uuid.uuid4())
        kept.ClearField("tenant")
        await self.following.office.foreign_post.keep(
            Target(seen.task.id, kept.id, MessageToJson(kept, indent=None), seen.position)
        )
        return kept

    async def of(self, task_id: str) -> tuple[TaskPushNotificationConfig, ...]:
        """Those of one task."""
        return tuple(_read(target) for target in await self.following.office.foreign_post.targets(task_id))

    async def forget(self, task_id: str, target_id: str) -> None:
        """Tells this target nothing more."""
        await self.following.office.foreign_post.forget(task_id, target_id)

    async def run(self, client: httpx.AsyncClient) -> None:
        """Tells every change, until it is cancelled."""
        async with self.following.office.wake.watching() as following:
            while True:
                for target in await self.following.office.foreign_post.due():
                    await self._tell(client, target)
                await following(min(LOOK_SECONDS, *self._waiting(), LOOK_SECONDS))

    def _waiting(self) -> list[float]:
        now = self.clock.monotonic()
        return [max(0.05, failing.again - now) for failing in self._failing.values()]

    async def _tell(self, client: httpx.AsyncClient, target: Target) -> None:
        key = (target.board_task, target.id)
        failing = self._failing.get(key)
        if failing is not None and failing.position == target.position and failing.again > self.clock.monotonic():
            return
        seen = await self.following.office.foreign.seen(target.board_task)
        if seen is None or (problem := await self._sent(client, target, seen)) is None:
            self._failing.pop(key, None)
            over = seen is None or seen.ended is not None
            await self._known(target, EVER if over else target.position)
            return
        times = failing.times + 1 if failing is not None and failing.position == target.position else 1
        if times > len(RETRY_SECONDS):
            logger.warning("task %s: %s is not told of a change: %s", target.board_task, target.id, problem)
            self._failing.pop(key, None)
            await self._known(target, target.position)
            return
        again = self.clock.monotonic() + RETRY_SECONDS[times - 1]
        self._failing[key] = Failing(target.position, times, again)

    async def _known(self, target: Target, position: int) -> None:
        told = Target(target.board_task, target.id, target.text, target.told, position)
        await self.following.office.foreign_post.told(told)

    async def _sent(self, client: httpx.AsyncClient, target: Target, seen: ForeignTask) -> str | None:
        """Why it was not told; None: it was."""
        config = _read(target)
        headers = {TOKEN_HEADER: config.token} if config.token else {}
        if config.authentication.scheme and config.authentication.credentials:
            headers["Authorization"] = f"{config.authentication.scheme} {config.authentication.credentials}"
        body = StreamResponse(task=task_of(seen, await self.following.result(seen), 0))
        try:
            async with client.stream("POST", config.url, json=MessageToDict(body), headers=headers) as response:
                return None if response.is_success else f"it answers {response.status_code}"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return f"{type(error).__name__}: {error}"


def _read(target: Target) -> TaskPushNotificationConfig:
    try:
        return Parse(target.text, TaskPushNotificationConfig(), ignore_unknown_fields=True)
    except ParseError:
        logger.warning("the target %s of task %s cannot be read", target.id, target.board_task)
        return TaskPushNotificationConfig(id=target.id, task_id=target.board_task)
