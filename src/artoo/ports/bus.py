"""Define the stream as its users see it (SPEC section 1)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.roles import Role


class Port(Protocol):
    """A role's place on the stream of one task: it speaks as that role only, and hears what is meant for it.

    Iterating yields the inbox in order of arrival and never ends by itself; `close` ends it.
    """

    @property
    def role(self) -> Role:
        """Return the role that this port speaks as."""
        ...

    @property
    def task_id(self) -> str:
        """Return the task that this port belongs to."""
        ...

    def publish(
        self, payload: Contract, *, cause: Envelope | None = None, subtask_id: str | None = None
    ) -> Envelope:
        """Put a message on the stream and return its envelope at once; never wait for a subscriber.

        `subtask_id` defaults to the port's own. Raises RouteRefused when the table of routes forbids it.
        """
        ...

    async def receive(self) -> Envelope:
        """Return the next message of the inbox. Raises InboxOverflow if a message could not be kept."""
        ...

    def __aiter__(self) -> AsyncIterator[Envelope]:
        """Iterate over the inbox."""
        ...

    def close(self) -> None:
        """Close the inbox and leave the stream; iteration ends. Idempotent."""
        ...


class Subscription(Protocol):
    """A watcher's bounded queue. When it is full, new messages are dropped for it alone, and counted."""

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
        """Stop to watch the stream. Queued messages can still be read. Idempotent."""
        ...


class Bus(Protocol):
    """The stream, with ports for roles, subscriptions for watchers, and taps."""

    def port(self, role: Role, task_id: str, *, subtask_id: str | None = None, capacity: int = 256) -> Port:
        """Open a port for a role. With `subtask_id`, the inbox holds that subtask's messages only."""
        ...

    def subscribe(
        self,
        name: str,
        *,
        kinds: frozenset[str] | None = None,
        task_id: str | None = None,
        capacity: int = 1_024,
    ) -> Subscription:
        """Watch the stream, losing messages rather than slowing it down."""
        ...

    def attach(self, tap: Callable[[Envelope], None]) -> Callable[[], None]:
        """Call `tap` synchronously for every message, before any queue. For taps that must lose nothing.

        `tap` must be quick and must not raise; one that raises is detached and reported once.
        Return a function that detaches it.
        """
        ...
