"""What a command has printed so far, while it runs. No message: nothing logs it, and losing it never matters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Heard = Callable[[bytes], None]
"""Hears what a command writes on either stream, in pieces as they come. Quick, never raises."""


def unheard(written: bytes) -> None:
    """Nobody looks."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The last whole lines of a command that runs, without secrets. `act` as in ToolStarted."""

    task_id: str
    act: str
    lines: tuple[str, ...]


OnOutput = Callable[[Printed], None]
"""Is told a few times a second at most, in the event loop. Quick, never raises."""
