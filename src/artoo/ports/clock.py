"""The interface of a clock, which replay, resume and tests replace."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The only source of time for code that makes decisions."""

    def now(self) -> datetime:
        """Return the present time of day as an aware datetime in UTC. This time may jump if the machine's clock is
        set."""
        ...

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary start, which never go back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of this clock's time."""
        ...
