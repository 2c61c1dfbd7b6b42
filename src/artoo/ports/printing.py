"""The interface of a command's live output for displays, which is not logged.

This output is no message of the stream: it is not logged and may be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Heard = Callable[[bytes], None]
"""A callback that receives pieces of the output and error output of a command. It must return quickly and never
raise."""


def unheard(written: bytes) -> None:
    """Ignore the output."""


@dataclass(frozen=True, slots=True)
class Printed:
    """The last whole lines of a running command's output, with secrets removed. `act` has the same meaning as in
    ToolStarted."""

    task_id: str
    act: str
    lines: tuple[str, ...]


OnOutput = Callable[[Printed], None]
"""A callback that the event loop calls at most a few times a second. It must return quickly and never raise."""
