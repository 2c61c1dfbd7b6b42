"""Give a role its place on the stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from artoo.bus.queues import Inbox
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.roles import Role


class Publish(Protocol):
    """A function that puts a payload on the stream in the name of a role."""

    def __call__(
        self, sender: Role, task_id: str, subtask_id: str | None, payload: Contract, cause: Envelope | None
    ) -> Envelope: ...


class RolePort:
    """The port of one role of one task, with that role's inbox (ports.bus.Port)."""

    __slots__ = ("_inbox", "_publish", "_role", "_subtask_id", "_task_id")

    def __init__(
        self,
        role: Role,
        task_id: str,
        subtask_id: str | None,
        capacity: int,
        publish: Publish,
        leave: Callable[[Inbox], None],
    ) -> None:
        place = f"task {task_id}" if subtask_id is None else f"task {task_id}, subtask {subtask_id}"
        self._role = role
        self._task_id = task_id
        self._subtask_id = subtask_id
        self._publish = publish
        self._inbox = Inbox(f"the inbox of {role.value} ({place})", capacity, leave)

    @property
    def role(self) -> Role:
        """Return the role that this port speaks as."""
        return self._role

    @property
    def task_id(self) -> str:
        """Return the task that this port belongs to."""
        return self._task_id

    @property
    def subtask_id(self) -> str | None:
        """Return the subtask that this port belongs to, if any."""
        return self._subtask_id

    @property
    def inbox(self) -> Inbox:
        """Return the inbox into which the bus puts this role's messages."""
        return self._inbox

    def publish(
        self, payload: Contract, *, cause: Envelope | None = None, subtask_id: str | None = None
    ) -> Envelope:
        """Put a message on the stream and return its envelope. Raises RouteRefused.

        Still speaks after `close`: what a role did last belongs on the stream even when it listens no more.
        """
        return self._publish(
            self._role, self._task_id, self._subtask_id if subtask_id is None else subtask_id, payload, cause
        )

    async def receive(self) -> Envelope:
        """Return the next message. Raises InboxOverflow when one could not be kept, StreamClosed after `close`."""
        return await self._inbox.receive()

    def __aiter__(self) -> AsyncIterator[Envelope]:
        return self._inbox.__aiter__()

    def close(self) -> None:
        """Stop listening and forget what is queued; iteration ends. Idempotent."""
        self._inbox.close()
