"""A watcher was too slow and missed messages."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.events import MessagesDropped
from artoo.contracts.roles import Role


def plant(stream: Stream) -> None:
    stream.say(MessagesDropped(subscriber="display", count=17), sender=Role.BUS)


FAULT = StreamFault("two at once", plant)
