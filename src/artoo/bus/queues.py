"""Bounded queues of one reader, an inbox that fails if full, and a watcher's queue that drops if full.

A queue is a deque together with a way of waking its reader.

A message costs one append. A waiting reader is woken only once, even if more messages follow before it runs. This
makes bursts cheap. A queue with a lock or an awaitable for every message would cost several times as much.
"""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Literal, Protocol

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import InboxOverflow, ProtocolError, StreamClosed

Burst = Literal["began", "over"]


class MessageQueue:
    """A bounded queue with one reader. It is not thread-safe: use it only on the thread of the event loop."""

    __slots__ = ("_closed", "_waiter", "capacity", "name", "queued")

    def __init__(self, name: str, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"{name}: a queue needs a capacity of at least 1, not {capacity}")
        self.name = name
        self.capacity = capacity
        self.queued: deque[Envelope] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def closed(self) -> bool:
        """This is True if no more messages will be put into the queue."""
        return self._closed

    async def receive(self) -> Envelope:
        """Return the next message. Raises StreamClosed if the queue is closed and empty, and ProtocolError if
        another reader is waiting."""
        queued = self.queued
        while not queued:
            if not self.ready():
                await self._arrival()
        return queued.popleft()

    async def __aiter__(self) -> AsyncIterator[Envelope]:
        queued = self.queued
        while True:
            while queued:
                yield queued.popleft()
            try:
                while not self.ready():
                    await self._arrival()
            except StreamClosed:
                return

    def ready(self) -> bool:
        """Return whether a message can be taken without waiting."""
        return bool(self.queued)

    def wake(self) -> None:
        """Wake the reader if one is waiting."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def end(self) -> None:
        """Accept no more messages. The reader still gets the queued messages, and then StreamClosed. A second call
        has no effect."""
        self._closed = True
        self.wake()

    def _arrival(self) -> asyncio.Future[None]:
        """Return the future that a reader awaits. If the future of an earlier reader is done because that reader
        was cancelled, it may be replaced."""
        if self._closed:
            raise StreamClosed(f"{self.name} is closed; nothing more will arrive there")
        if self._waiter is not None and not self._waiter.done():
            raise ProtocolError(f"{self.name} already has a reader waiting; open another one for a second reader")
        waiter = self._waiter = get_running_loop().create_future()
        return waiter


class Inbox(MessageQueue):
    """A lossless queue. If it is full, an error is raised in its reader instead of losing a message silently."""

    __slots__ = ("_leave", "overflowed")

    def __init__(self, name: str, capacity: int, leave: Callable[[Inbox], None] | None = None) -> None:
        super().__init__(name, capacity)
        self.overflowed = False
        self._leave = leave

    def put(self, envelope: Envelope) -> None:
        """Append a message to the queue. If the queue is full, the inbox overflows, and `receive` raises an error
        from then on."""
        if self.overflowed:
            return  # The reader gets the error at its next read, so later messages would be useless.
        if len(self.queued) >= self.capacity:
            self.overflow()
            return
        self.queued.append(envelope)
        if self._waiter is not None:
            self.wake()

    def overflow(self) -> None:
        """Record that a message was lost. The queued messages are dropped, so that the reader gets the error at
        once."""
        self.overflowed = True
        self.queued.clear()
        self.wake()

    def close(self) -> None:
        """Close the inbox and clear its messages. A second call has no effect."""
        if not self._closed:
            self.queued.clear()
            self.end()
            if self._leave is not None:
                self._leave(self)

    def ready(self) -> bool:
        """Return whether a message can be taken without waiting. Raises InboxOverflow."""
        if self.overflowed:
            raise InboxOverflow(
                f"{self.name} overflowed: {self.capacity} messages were waiting and the next could not be kept. "
                "The task cannot go on without it; read the inbox more often or open it with a larger capacity."
            )
        return bool(self.queued)


class Source(Protocol):
    """The source of a watcher's messages. It delivers several messages at a time.

    `pending` contains the messages that have not been moved to the queues yet. A watcher that waits sets
    `reader_waits`, so that the next message is delivered at once."""

    pending: list[Envelope]
    reader_waits: bool

    def hand_out(self) -> None:
        """Move the pending messages into the queues."""
        ...


class WatchQueue(MessageQueue):
    """A watcher's queue. If it is full, new messages are dropped and counted for this watcher only.

    A burst of drops begins with the first dropped message and ends when the reader has emptied half of the queue.
    Otherwise every drop would be reported for a reader that is always slightly too slow."""

    __slots__ = ("_dropped", "_leave", "burst", "kinds", "source", "task_id")

    def __init__(
        self,
        name: str,
        capacity: int,
        kinds: frozenset[str] | None,
        task_id: str | None,
        leave: Callable[[WatchQueue], None],
    ) -> None:
        super().__init__(name, capacity)
        self.kinds = kinds
        self.task_id = task_id
        self.burst = 0
        self.source: Source | None = None
        self._dropped = 0
        self._leave = leave

    @property
    def dropped(self) -> int:
        """Return the number of messages that this watcher missed so far."""
        if self.source is not None:
            self.source.hand_out()
        return self._dropped

    def put(self, envelope: Envelope) -> bool:
        """Append one message if there is room for it and if no burst of drops is going on. If it returns False,
        call `put_all` instead."""
        if self.burst or len(self.queued) >= self.capacity:
            return False
        self.queued.append(envelope)
        waiter = self._waiter
        # This is the code of `wake`. It is repeated here, because every watcher would pay for a call at every
        # message.
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)
        return True

    def put_all(self, envelopes: list[Envelope]) -> list[tuple[Burst, int]]:
        """Append the messages, or count them as dropped. Return the burst of drops that has ended and the one that
        has begun, if there are any."""
        queued = self.queued
        waiting = len(queued)
        said: list[tuple[Burst, int]] = []
        # The queue has to be half empty first, because otherwise a reader that is slightly too slow would cause a
        # report for every message.
        if self.burst and waiting <= self.capacity // 2:
            said.append(("over", self.burst))
            self.burst = 0
        room = self.capacity - waiting
        if len(envelopes) <= room:
            queued.extend(envelopes)
        else:
            queued.extend(envelopes[:room])
            missed = len(envelopes) - room
            if not self.burst:
                said.append(("began", missed))
            self.burst += missed
            self._dropped += missed
        if self._waiter is not None:
            self.wake()
        return said

    def close(self) -> None:
        """Stop watching. Queued messages can still be read. A second call has no effect."""
        if not self._closed:
            self._leave(self)
            self.end()

    def ready(self) -> bool:
        """Return whether a message can be taken without waiting."""
        # If the queue is empty, it takes all pending messages of a burst as one slice.
        if not self.queued and self.source is not None and self.source.pending:
            self.source.hand_out()
        return bool(self.queued)

    def _arrival(self) -> asyncio.Future[None]:
        arrival = super()._arrival()
        if self.source is not None:
            self.source.reader_waits = True
        return arrival
