"""One role's port to the stream of one task, to publish and receive messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from artoo.bus.queues import Inbox
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.roles import Role


class Publish(Protocol):
    """A function that publishes a payload as a role."""

    def __call__(
        self, sender: Role, task_id: str, subtask_id: str | None, payload: Contract, cause: Envelope | None
    ) -> Envelope: ...


class RolePort(Inbox):
    """The port of one role of one task (it implements ports.bus.Port). It is the role's inbox, and it can also
    publish."""

    __slots__ = ("_publish", "role", "subtask_id", "task_id")

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
        super().__init__(f"the inbox of {role.value} ({place})", capacity, leave)
        self.role = role
        self.task_id = task_id
        self.subtask_id = subtask_id
        self._publish = publish

    def publish(
        self, payload: Contract, *, cause: Envelope | None = None, subtask_id: str | None = None
    ) -> Envelope:
        """Publish a message and return its envelope. Raises RouteRefused.

        A closed port can still publish, because the last records of a role must be on the stream too."""
        return self._publish(
            self.role, self.task_id, self.subtask_id if subtask_id is None else subtask_id, payload, cause
        )
