"""The grid of an agent's beats, as arithmetic: which beat is next, and which were slept through."""

from __future__ import annotations

import math
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

    def shifted(self, seconds: float) -> Beat:
        """Return the same beat after the clock was moved by `seconds`."""
        return Beat(self.number, self.due_at + timedelta(seconds=seconds))


@dataclass(frozen=True, slots=True)
class Reckoning:
    """The beats after one: `overdue` ones that nobody held, then `beat`, in `wait` seconds."""

    beat: Beat
    wait: float
    overdue: int = 0


def reckon(last: Beat | None, now: datetime, interval: float) -> Reckoning:
    """Of the beats that fell due since `last`, the newest is still to be held; those before it are overdue.

    `last` None: the first beat of all, due now.
    """
    if last is None:
        return Reckoning(Beat(1, now), 0.0)
    due = math.floor((now - last.due_at).total_seconds() / interval)
    if due < 1:
        following = last.later(1, interval)
        return Reckoning(following, max(0.0, (following.due_at - now).total_seconds()))
    return Reckoning(last.later(due, interval), 0.0, due - 1)
