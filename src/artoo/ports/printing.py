"""Define the output of a running command as displays see it.

It is no message: no log has it, and it may be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Heard = Callable[[bytes], None]
"""Receives the output of a command on either stream, in pieces as they come. Quick, never raises."""


def unheard(written: bytes) -> None:
    """Ignore the output."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The last whole lines of a command that runs, without secrets. `act` as in ToolStarted."""

    task_id: str
    act: str
    lines: tuple[str, ...]


OnOutput = Callable[[Printed], None]
"""Is called a few times a second at most, in the event loop. Quick, never raises."""
