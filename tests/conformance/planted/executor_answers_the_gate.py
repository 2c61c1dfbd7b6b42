"""An executor gives the consent that only a person may give."""

from __future__ import annotations

from planting import Stream, StreamFault

from artoo.contracts.roles import Role


def plant(stream: Stream) -> None:
    stream.put("ConfirmationAnswer", sender=Role.EXECUTOR)


FAULT = StreamFault("a deletion that was agreed to", plant)
