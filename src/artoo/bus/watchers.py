"""Distribute messages to all watchers through a shared list of pending messages.

A message costs one append.

Watchers that receive all messages share one list of pending messages, to which each message is appended once. The
whole list is moved to the watchers' own queues when a watcher waits for a message, when a watcher finds its queue
empty, or when the list is long. Therefore a burst costs each watcher one slice and one wake-up, and a message of a
quiet stream is delivered without delay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

from artoo.bus.queues import Burst, WatchQueue
from artoo.contracts.envelope import Envelope

MOST_PENDING = 256

OnBurst = Callable[[WatchQueue, Burst, int], None]


class Watchers:
    """The queues of all watchers, by their subscriptions. `on_burst` is called when a burst of drops begins, and
    when it ends."""

    def __init__(self, on_burst: OnBurst) -> None:
        self._on_burst = on_burst
        self._everything: tuple[WatchQueue, ...] = ()
        self.pending: list[Envelope] = []
        self.reader_waits = False
        self._by_kind: defaultdict[str, list[WatchQueue]] = defaultdict(list)
        self._by_task: defaultdict[str, list[WatchQueue]] = defaultdict(list)
        self._selective = False

    def __iter__(self) -> Iterator[WatchQueue]:
        found = {id(queue): queue for queue in self._everything}
        for index in (self._by_kind, self._by_task):
            found |= {id(queue): queue for group in index.values() for queue in group}
        return iter(found.values())

    def add(self, queue: WatchQueue) -> None:
        """Add a queue. It receives the messages of its subscription from the next message on."""
        if queue.task_id is not None:
            self._by_task[queue.task_id].append(queue)
        elif queue.kinds is not None:
            for kind in queue.kinds:
                self._by_kind[kind].append(queue)
        else:
            self.hand_out()
            self._everything = (*self._everything, queue)
            queue.source = self
        self._selective = bool(self._by_kind or self._by_task)

    def remove(self, queue: WatchQueue) -> None:
        """Remove a queue from the stream. It still receives earlier messages."""
        if queue.task_id is not None:
            _without(self._by_task, queue.task_id, queue)
        elif queue.kinds is not None:
            for kind in queue.kinds:
                _without(self._by_kind, kind, queue)
        else:
            self.hand_out()
            self._everything = tuple(other for other in self._everything if other is not queue)
            queue.source = None
        self._selective = bool(self._by_kind or self._by_task)

    def of_task(self, task_id: str) -> tuple[WatchQueue, ...]:
        """Return the watchers whose subscription is limited to this task."""
        return tuple(self._by_task.get(task_id, ()))

    def deliver(self, kind: str, envelope: Envelope) -> None:
        """Deliver a message to the queues of all its watchers. Never waits."""
        if self._everything:
            pending = self.pending
            if self.reader_waits and not pending:  # A single message is delivered to a waiting reader directly.
                self.reader_waits = False
                for queue in self._everything:
                    if not queue.put(envelope):
                        self._put(queue, [envelope])
            else:
                pending.append(envelope)
                if self.reader_waits or len(pending) >= MOST_PENDING:
                    self.hand_out()
        if self._selective:
            for queue in self._choosing(kind, envelope.task_id):
                if not queue.put(envelope):
                    self._put(queue, [envelope])

    def hand_out(self) -> None:
        """Move the pending messages into the queues."""
        if self.pending:
            pending, self.pending = self.pending, []
            self.reader_waits = False
            for queue in self._everything:
                self._put(queue, pending)

    def _put(self, queue: WatchQueue, envelopes: list[Envelope]) -> None:
        for burst, count in queue.put_all(envelopes):
            self._on_burst(queue, burst, count)

    def _choosing(self, kind: str, task_id: str) -> list[WatchQueue]:
        chosen = list(self._by_kind.get(kind, ()))
        chosen += [q for q in self._by_task.get(task_id, ()) if q.kinds is None or kind in q.kinds]
        return chosen


def _without(index: defaultdict[str, list[WatchQueue]], key: str, queue: WatchQueue) -> None:
    remaining = [other for other in index.get(key, ()) if other is not queue]
    if remaining:
        index[key] = remaining
    else:
        index.pop(key, None)
