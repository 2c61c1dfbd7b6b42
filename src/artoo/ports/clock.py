"""Time as a port: replay, resume and tests bring their own."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The only source of time for everything that decides."""

    def now(self) -> datetime:
        """Wall-clock time, aware, UTC. May jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Returns after `seconds` of this clock's time."""
        ...
