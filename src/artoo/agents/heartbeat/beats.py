"""The grid of an agent's beats, as arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

SHORTEST_PULSE, LONGEST_PULSE = 60, 300
"""Seconds between two beats (`004`, pitfall "heartbeat storming")."""


@dataclass(frozen=True, slots=True)
class Beat:
    """One beat. `number` counts from 1 and is never used twice, whatever the clock does; `due_at` is aware UTC."""

    number: int
    due_at: datetime

    def later(self, beats: int, interval: float) -> Beat:
        """Return the beat `beats` further on the grid of `interval` seconds."""
        return Beat(self.number + beats, self.due_at + timedelta(seconds=beats * interval))

    def due(self, now: datetime, interval: float) -> int:
        """Return how many beats after this one have fallen due by `now`."""
        return max(0, (now - self.due_at) // timedelta(seconds=interval))

    def shifted(self, seconds: float) -> Beat:
        """Return the same beat after the clock was moved by `seconds`."""
        return Beat(self.number, self.due_at + timedelta(seconds=seconds))
