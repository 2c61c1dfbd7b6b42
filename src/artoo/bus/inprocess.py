"""Publish each message to taps, inboxes and watchers in one process, with their default capacities.

A message whose route is not in the table of routes is refused.

Reference: SPEC section 1. This module implements ports.bus.Bus.

Every message is delivered synchronously: first to the taps, then to the inboxes of the roles in the table of
routes, then to the queues of the watchers. The publisher never sees an error of a subscriber and never waits for
one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from artoo.bus.ports import RolePort
from artoo.bus.queues import Burst, Inbox, WatchQueue
from artoo.bus.routing import Address, TaskInboxes
from artoo.bus.watchers import Watchers
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import RouteRefused
from artoo.contracts.events import MessagesDropped, RouteViolation
from artoo.contracts.roles import Role
from artoo.contracts.routes import ROUTES
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids

logger = logging.getLogger(__name__)

Tap = Callable[[Envelope], None]

_ALLOWED: dict[Role, frozenset[str]] = {
    role: frozenset(kind for kind, route in ROUTES.items() if role in route.senders) for role in Role
}


class InProcessBus:
    """A stream with any number of taps, in one process and on one event loop. The class is not thread-safe.

    `clock` and `ids` provide the times and the ids of messages. They are given by the caller, so that a replay can
    use its own."""

    def __init__(self, clock: Clock, ids: Ids) -> None:
        self._now = clock.now
        self._new_id = ids.new
        self._taps: tuple[tuple[object, Tap], ...] = ()
        self._tasks: dict[str, TaskInboxes] = {}
        self._watchers = Watchers(self._on_burst)

    @property
    def open_tasks(self) -> int:
        """Return the number of tasks that still have an inbox or a message that is held for an inbox."""
        return len(self._tasks)

    def port(self, role: Role, task_id: str, *, subtask_id: str | None = None, capacity: int = 256) -> RolePort:
        """Open a role's port. With `subtask_id`, its inbox receives only that subtask's messages, including those
        that were published before it was opened."""
        address = (role, subtask_id)
        port = RolePort(role, task_id, subtask_id, capacity, self._publish, partial(self._leave, task_id, address))
        self._task(task_id).enter(address, port)
        return port

    def inbox(self, task_id: str, kinds: frozenset[str], *, capacity: int = 1_024) -> Inbox:
        """Open a lossless inbox that receives all later messages of these kinds of one task. It cannot publish.

        It is for components that react to the stream without being a role, such as the pool that starts executors.
        If it is too full for a message, its reader gets an InboxOverflow error."""
        inbox = Inbox(
            f"the inbox for {', '.join(sorted(kinds))} (task {task_id})",
            capacity,
            partial(self._unwatch, task_id, kinds),
        )
        self._task(task_id).watch(kinds, inbox)
        return inbox

    def subscribe(
        self,
        name: str,
        *,
        kinds: frozenset[str] | None = None,
        task_id: str | None = None,
        capacity: int = 1_024,
    ) -> WatchQueue:
        """Watch the stream. A slow watcher loses messages instead of slowing the stream down. `name` is used in
        warnings."""
        queue = WatchQueue(name, capacity, kinds, task_id, self._stop_watching)
        self._watchers.add(queue)
        return queue

    def repeat(self, envelope: Envelope) -> None:
        """Deliver an earlier message again to the inboxes of its receivers, but not to taps and watchers."""
        task = self._tasks.get(envelope.task_id)
        if task is not None:
            task.deliver(envelope.kind, envelope)

    def attach(self, tap: Tap) -> Callable[[], None]:
        """Call `tap` synchronously for every message before the message enters any queue. Return a function that
        detaches the tap."""
        attachment = object()  # The key is unique, because the same function may be attached twice.
        self._taps = (*self._taps, (attachment, tap))
        return partial(self._detach, attachment)

    def close_task(self, task_id: str) -> None:
        """Close all ports, inboxes and task-bound subscriptions of a task and forget it. A second call has no
        effect.

        Later messages of the task still reach taps and watchers.
        """
        task = self._tasks.pop(task_id, None)
        if task is not None:
            task.close()
        for queue in self._watchers.of_task(task_id):
            queue.close()

    def close(self) -> None:
        """Close every task and every subscription. Taps stay attached, because their owners detach them."""
        for task_id in tuple(self._tasks):
            self.close_task(task_id)
        for queue in tuple(self._watchers):
            queue.close()

    def _task(self, task_id: str) -> TaskInboxes:
        task = self._tasks.get(task_id)
        if task is None:
            task = self._tasks[task_id] = TaskInboxes()
        return task

    def _publish(
        self, sender: Role, task_id: str, subtask_id: str | None, payload: Contract, cause: Envelope | None
    ) -> Envelope:
        kind = type(payload).__name__
        if kind not in _ALLOWED[sender]:
            self._refuse(sender, task_id, subtask_id, kind, cause)
        envelope = Envelope(
            self._new_id(),
            sender,
            task_id,
            self._now(),
            payload,
            subtask_id,
            None if cause is None else cause.id,
        )
        # Taps come first, so that the log and the Auditor have a message before any role can answer it.
        for attachment, tap in self._taps:
            try:
                tap(envelope)
            except Exception:
                # A broken tap is detached, because the publisher must never see the error of a subscriber.
                self._detach(attachment)
                logger.exception("a tap failed on %s %s and was detached", kind, envelope.id)
        task = self._tasks.get(task_id)
        if task is not None:
            task.deliver(kind, envelope)
        self._watchers.deliver(kind, envelope)
        return envelope

    def _refuse(
        self, sender: Role, task_id: str, subtask_id: str | None, kind: str, cause: Envelope | None
    ) -> None:
        route = ROUTES.get(kind)
        reason = (
            f"{sender.value} may not publish {kind}: it is not in the table of routes (artoo.contracts.routes)"
            if route is None
            else f"{sender.value} may not publish {kind}: only {', '.join(sorted(route.senders))} may"
        )
        # The bus itself publishes a record, so that the stream contains the attempt but not the refused message.
        violation = RouteViolation(offender=sender, refused_kind=kind, reason=reason)
        self._publish(Role.BUS, task_id, subtask_id, violation, cause)
        raise RouteRefused(f"{reason} (task {task_id}). Nothing was published; the attempt is on the stream.")

    def _on_burst(self, queue: WatchQueue, burst: Burst, count: int) -> None:
        if burst == "over":
            self._report_dropped(queue, count)
            return
        logger.warning(
            "subscriber %s is too slow: its %d places are taken and new messages are dropped for it until it reads",
            queue.name,
            queue.capacity,
        )

    def _report_dropped(self, queue: WatchQueue, count: int) -> None:
        report = MessagesDropped(subscriber=queue.name, count=count)
        self._publish(Role.BUS, queue.task_id or "", None, report, None)

    def _detach(self, attachment: object) -> None:
        self._taps = tuple(entry for entry in self._taps if entry[0] is not attachment)

    def _leave(self, task_id: str, address: Address, inbox: Inbox) -> None:
        task = self._tasks.get(task_id)
        if task is not None:
            task.leave(address, inbox)

    def _unwatch(self, task_id: str, kinds: frozenset[str], inbox: Inbox) -> None:
        task = self._tasks.get(task_id)
        if task is not None:
            task.unwatch(kinds, inbox)

    def _stop_watching(self, queue: WatchQueue) -> None:
        self._watchers.remove(queue)
        if queue.burst:
            self._report_dropped(queue, queue.burst)
