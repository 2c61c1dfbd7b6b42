"""The grid of an agent's beats, as arithmetic: which beat is next, and which were slept through."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from artoo.contracts.errors import ConfigurationError

SHORTEST_PULSE, LONGEST_PULSE = 60, 300
"""Seconds between two beats (`004`, pitfall "heartbeat storming")."""

JUMP_TOLERANCE = 5.0
"""Seconds by which the wall clock may leave the steady one between two looks before that counts as a jump."""


def checked_interval(seconds: float, where: str = "heartbeat.interval_seconds") -> float:
    """`seconds` when it is from 60 to 300. Raises ConfigurationError with the reason."""
    if SHORTEST_PULSE <= seconds <= LONGEST_PULSE:
        return float(seconds)
    raise ConfigurationError(
        f"{where} is {seconds:g}; it must be from {SHORTEST_PULSE} to {LONGEST_PULSE} seconds:"
        " shorter pulses storm the model, longer ones leave mail lying"
    )


@dataclass(frozen=True, slots=True)
class Beat:
    """One beat. `number` counts from 1 and is never used twice, whatever the clock does; `due_at` is aware UTC."""

    number: int
    due_at: datetime

    def later(self, beats: int, interval: float) -> Beat:
        """The beat `beats` further on the grid of `interval` seconds."""
        return Beat(self.number + beats, self.due_at + timedelta(seconds=beats * interval))

    def shifted(self, seconds: float) -> Beat:
        """The same beat after the clock was moved by `seconds`."""
        return Beat(self.number, self.due_at + timedelta(seconds=seconds))


@dataclass(frozen=True, slots=True)
class Reckoning:
    """What comes after a beat: `missed` ones (the first and the last of them), then `beat`, in `wait` seconds."""

    beat: Beat
    wait: float
    missed: tuple[Beat, Beat] | None = None


def reckon(last: Beat | None, now: datetime, interval: float) -> Reckoning:
    """Of the beats that fell due since `last`, the newest is still to be held; those before it were missed.

    `last` None: the first beat of all, due now.
    """
    if last is None:
        return Reckoning(Beat(1, now), 0.0)
    overdue = math.floor((now - last.due_at).total_seconds() / interval)
    if overdue < 1:
        following = last.later(1, interval)
        return Reckoning(following, max(0.0, (following.due_at - now).total_seconds()))
    missed = (last.later(1, interval), last.later(overdue - 1, interval)) if overdue > 1 else None
    return Reckoning(last.later(overdue, interval), 0.0, missed)


def after_absence(last: Beat, now: datetime, interval: float) -> tuple[Beat, float]:
    """The last beat as the grid's anchor after artoo was away, and by how many seconds the clock had gone back.

    Nothing tells how long the absence was when the clock went back meanwhile: the grid starts again at `now`.
    """
    ahead = (last.due_at - now).total_seconds()
    if ahead <= JUMP_TOLERANCE:
        return last, 0.0
    return Beat(last.number, now - timedelta(seconds=interval)), -ahead
