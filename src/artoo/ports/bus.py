"""The interfaces of the stream, for a role's port, a watcher's subscription, and the bus.

Reference: SPEC section 1.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.roles import Role


class Port(Protocol):
    """A role's access to the stream of one task. The role publishes messages through it and receives only the
    messages that are addressed to this role.

    Iterating over the port yields the messages of the inbox in order of arrival. The iteration ends only after
    `close`."""

    @property
    def role(self) -> Role:
        """Return the role as which this port publishes."""
        ...

    @property
    def task_id(self) -> str:
        """Return the task that this port belongs to."""
        ...

    def publish(
        self, payload: Contract, *, cause: Envelope | None = None, subtask_id: str | None = None
    ) -> Envelope:
        """Publish a message and return its envelope at once, without waiting for a subscriber.

        `subtask_id` defaults to the subtask of the port itself. Raises RouteRefused when the table of routes
        forbids it.
        """
        ...

    async def receive(self) -> Envelope:
        """Return the next message of the inbox. Raises InboxOverflow if the inbox was too full for a message."""
        ...

    def __aiter__(self) -> AsyncIterator[Envelope]:
        """Iterate over the inbox."""
        ...

    def close(self) -> None:
        """Close the inbox and leave the stream, which ends an iteration. A second call has no effect."""
        ...


class Subscription(Protocol):
    """A watcher's bounded queue. If the queue is full, new messages are dropped and counted for this watcher
    only."""

    @property
    def dropped(self) -> int:
        """Count the messages that this subscriber missed so far."""
        ...

    async def receive(self) -> Envelope:
        """Return the next message."""
        ...

    def __aiter__(self) -> AsyncIterator[Envelope]:
        """Iterate over the messages in order, until the queue is closed and drained."""
        ...

    def close(self) -> None:
        """Stop watching the stream. Queued messages can still be read. A second call has no effect."""
        ...


class Bus(Protocol):
    """The stream of messages: it opens ports for roles and subscriptions for watchers, and calls the attached
    taps."""

    def port(self, role: Role, task_id: str, *, subtask_id: str | None = None, capacity: int = 256) -> Port:
        """Open a port for a role. With `subtask_id`, the inbox receives only the messages of that subtask."""
        ...

    def subscribe(
        self,
        name: str,
        *,
        kinds: frozenset[str] | None = None,
        task_id: str | None = None,
        capacity: int = 1_024,
    ) -> Subscription:
        """Watch the stream. A slow watcher loses messages instead of slowing the stream down."""
        ...

    def attach(self, tap: Callable[[Envelope], None]) -> Callable[[], None]:
        """Call `tap` synchronously for every message, before any queue, so that it misses no message.

        `tap` must return quickly and not raise; a tap that raises is detached and reported once. Return a
        function that detaches the tap."""
        ...
