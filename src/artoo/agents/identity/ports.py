"""What the room of standing agents needs from the runtime."""

from __future__ import annotations

from typing import Protocol

from artoo.contracts.base import Contract
from artoo.contracts.roles import Role


class Publish(Protocol):
    """Puts a record on the stream; called on the event loop, never waits.

    `subject` is what the record is about: a board task's id, a mail's id, or an agent's name. A record may come a
    second time after a crash; its `event` (a Mail's `id`) is then the same.
    """

    def __call__(self, sender: Role, subject: str, payload: Contract) -> None: ...
