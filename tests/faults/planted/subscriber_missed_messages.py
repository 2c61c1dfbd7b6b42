"""A watcher was too slow and missed messages."""

from __future__ import annotations

from artoo.contracts.events import MessagesDropped
from artoo.contracts.roles import Role
from faults import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.say(MessagesDropped(subscriber="display", count=17), sender=Role.BUS)


FAULT = StreamFault("two at once", plant)
