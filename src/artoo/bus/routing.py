"""The index from task, role and subtask to inboxes, with the most messages held for a port.

The cost of a look-up does not grow with the number of tasks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from artoo.bus.queues import Inbox
from artoo.contracts.envelope import Envelope
from artoo.contracts.roles import Role
from artoo.contracts.routes import ROUTES

# Maximum number of messages that are held for a subtask's port that is not open yet.
HELD_PER_PORT = 256

Address = tuple[Role, str | None]

# Roles whose next step is usually a model call. They receive a message before the other roles do, so that the call
# starts earlier.
_ASKING = (Role.PERCEIVER, Role.PLANNER, Role.EXECUTOR, Role.AGENT_VALIDATOR, Role.META_VALIDATOR)


def _in_turn(role: Role) -> tuple[int, str]:
    return (_ASKING.index(role) if role in _ASKING else len(_ASKING), role.value)


_RECEIVERS = {kind: tuple(sorted(route.receivers, key=_in_turn)) for kind, route in ROUTES.items()}


class TaskInboxes:
    """The inboxes of one task, by role and subtask.

    A subtask's ports are opened by the component that sees the SubTask on the stream, so messages for a port may
    come before it is opened. Messages with a subtask are therefore held, up to a limit, until the port is opened or
    the task is closed. A message of the user that has no subtask is delivered to all open executors.
    """

    def __init__(self) -> None:
        self._inboxes: dict[Address, list[Inbox]] = {}
        self._by_kind: dict[str, list[Inbox]] = {}
        self._held: dict[Address, deque[Envelope]] = {}
        self._lost: set[Address] = set()
        self._left: set[Address] = set()

    def enter(self, address: Address, inbox: Inbox) -> None:
        """Add a port's inbox, and deliver the messages to it that were held for it."""
        self._inboxes.setdefault(address, []).append(inbox)
        for envelope in self._held.pop(address, ()):
            inbox.put(envelope)
        if address in self._lost:
            self._lost.discard(address)
            inbox.overflow()

    def leave(self, address: Address, inbox: Inbox) -> None:
        """Remove a port's inbox. From now on, no messages are held for this address."""
        remaining = [other for other in self._inboxes.get(address, ()) if other is not inbox]
        if remaining:
            self._inboxes[address] = remaining
        else:
            self._inboxes.pop(address, None)
            self._left.add(address)

    def watch(self, kinds: Iterable[str], inbox: Inbox) -> None:
        """Add an inbox that receives every message of these kinds."""
        for kind in kinds:
            self._by_kind.setdefault(kind, []).append(inbox)

    def unwatch(self, kinds: Iterable[str], inbox: Inbox) -> None:
        """Remove an inbox that `watch` added."""
        for kind in kinds:
            remaining = [other for other in self._by_kind.get(kind, ()) if other is not inbox]
            if remaining:
                self._by_kind[kind] = remaining
            else:
                self._by_kind.pop(kind, None)

    def deliver(self, kind: str, envelope: Envelope) -> None:
        """Deliver a message to the inboxes of all its receivers."""
        subtask_id = envelope.subtask_id
        for role in _RECEIVERS[kind]:
            wide = self._inboxes.get((role, None), ())
            for inbox in wide:
                inbox.put(envelope)
            if subtask_id is None:
                if role is Role.EXECUTOR:
                    self._deliver_to_each(role, envelope)
                continue
            narrow = self._inboxes.get((role, subtask_id), ())
            for inbox in narrow:
                inbox.put(envelope)
            if not wide and not narrow:
                self._hold((role, subtask_id), envelope)
        for inbox in self._by_kind.get(kind, ()):
            inbox.put(envelope)

    def _deliver_to_each(self, role: Role, envelope: Envelope) -> None:
        """Deliver a message that has no subtask to all open ports of the role that have one."""
        for (owner, subtask_id), inboxes in self._inboxes.items():
            if owner is role and subtask_id is not None:
                for inbox in inboxes:
                    inbox.put(envelope)

    def close(self) -> None:
        """Close every inbox of the task."""
        inboxes = {id(inbox): inbox for group in self._inboxes.values() for inbox in group}
        inboxes |= {id(inbox): inbox for group in self._by_kind.values() for inbox in group}
        for inbox in inboxes.values():
            inbox.close()
        self._held.clear()

    def _hold(self, address: Address, envelope: Envelope) -> None:
        # A closed port is never opened again, so messages for it would be held until the task ends.
        if address in self._left:
            return
        held = self._held.setdefault(address, deque())
        if len(held) < HELD_PER_PORT:
            held.append(envelope)
        else:
            self._lost.add(address)
