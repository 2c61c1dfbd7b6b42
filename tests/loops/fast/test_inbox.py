"""The executor's inbox is bounded."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import InboxOverflow
from artoo.contracts.roles import Role
from artoo.contracts.steering import UserMessage
from artoo.loops.fast.inbox import MOST_WAITING, Inbox


def message(number: int) -> Envelope:
    """Return a user's message."""
    return Envelope(
        f"id-{number}", Role.USER, "t", datetime(2026, 1, 1, tzinfo=UTC), UserMessage(text="x"), None, None
    )


async def test_what_cannot_be_kept_is_an_error() -> None:
    """Nothing is lost in silence; after a look there is room again."""
    inbox = Inbox()
    for number in range(MOST_WAITING):
        inbox.put(message(number))
    with pytest.raises(InboxOverflow, match="wait for one turn"):
        inbox.put(message(MOST_WAITING))
    assert len(inbox.drain()) == MOST_WAITING
    inbox.put(message(MOST_WAITING + 1))
