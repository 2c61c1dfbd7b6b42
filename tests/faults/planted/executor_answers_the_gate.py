"""An executor gives the consent that only a person may give."""

from __future__ import annotations

from artoo.contracts.roles import Role
from faults import Stream, StreamFault


def plant(stream: Stream) -> None:
    stream.put("ConfirmationAnswer", sender=Role.EXECUTOR)


FAULT = StreamFault("a deletion that was agreed to", plant)
