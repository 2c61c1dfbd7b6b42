"""Track the commands that continued after their call, with output, time limit and end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from artoo.contracts.errors import ToolError
from artoo.ports.printing import Heard, unheard
from artoo.ports.waiting import limits_here
from artoo.ports.workspace import Ended, Process
from artoo.tools.approval.network_consent import Hearing
from artoo.tools.core.command_runner import Command

_KEPT_SHARE, _MOST_KEPT = 0.1, 20.0
"""Part of the remaining time that a wait leaves for the model: this share, but at most this number of seconds."""
_LOOK_SECONDS = 0.25
"""Number of seconds between two checks whether a process waits for input."""
_ASKING_LOOKS = 2
"""Number of consecutive checks that must find a process waiting for input, because a program that starts also reads
files."""


def no_limit() -> float:
    """Return infinity, as the time left to a task without a time limit."""
    return math.inf


@dataclass(slots=True, eq=False)
class Tracked:
    """A process that continued after its call, and the command that it runs.

    `shown`: the offset up to which its output was shown to the model. `hearing` receives its network connections.
    `told`: true if the model was told how it ended.
    """

    process: Process
    command: Command
    subtask: str
    hearing: Hearing
    shown: int = 0
    told: bool = False

    @property
    def id(self) -> str:
        return self.process.id

    @property
    def runs(self) -> bool:
        return self.process.ended is None


@dataclass(slots=True)
class OutputForwarder:
    """Forwards the output of a process to the listener of the current call."""

    heard: Heard = unheard

    def __call__(self, written: bytes) -> None:
        self.heard(written)


@dataclass(slots=True, eq=False)
class Processes:
    """All processes of a task that continued after the call that started them. `time_left`: returns the seconds
    left to the task."""

    time_left: Callable[[], float] = no_limit
    _tracked: dict[str, Tracked] = field(default_factory=dict[str, Tracked])
    _listeners: dict[str, OutputForwarder] = field(default_factory=dict[str, OutputForwarder])

    def add(self, tracked: Tracked, listener: OutputForwarder) -> None:
        """Start to track a process."""
        self._tracked[tracked.id] = tracked
        self._listeners[tracked.id] = listener

    def listener(self, tracked: Tracked) -> OutputForwarder:
        """Return the object that forwards the process's output."""
        return self._listeners[tracked.id]

    def find(self, process_id: str) -> Tracked:
        """Return the process with this id. Raises ToolError with the known ids."""
        found = self._tracked.get(process_id.strip())
        if found is None:
            known = ", ".join(self._tracked) or "none was started"
            raise ToolError(f"there is no process {process_id.strip()!r} in this task; the processes are: {known}")
        return found

    @property
    def all(self) -> tuple[Tracked, ...]:
        """Return every process, oldest first."""
        return tuple(self._tracked.values())

    def any_runs(self) -> bool:
        """Check whether any process is running."""
        return any(one.runs for one in self._tracked.values())

    def others_run(self, subtask: str) -> bool:
        """Check whether a process of another subtask is running."""
        return any(one.runs and one.subtask != subtask for one in self._tracked.values())

    def ended_unseen(self, subtask: str) -> tuple[Tracked, ...]:
        """Return this subtask's processes that ended without a report to the model, each once."""
        found = tuple(
            one for one in self._tracked.values() if one.subtask == subtask and not (one.runs or one.told)
        )
        for one in found:
            one.told = True
        return found

    def seconds(self, wanted: float) -> float:
        """Limit a wait to the remaining time of the task and of the subtask. A part of this time is reserved for
        the model."""
        now = asyncio.get_running_loop().time()
        ends = (limit.when() for limit in limits_here())
        left = min((end - now for end in ends if end is not None), default=math.inf)
        left = min(left, self.time_left())
        return max(0.0, min(wanted, left - min(_MOST_KEPT, left * _KEPT_SHARE) if left != math.inf else wanted))


async def ended_or_asking(process: Process, seconds: float, *, asks: bool) -> Ended | None:
    """Wait for the end of a process. Return None if it is still running after `seconds`.

    `asks`: true to return None also as soon as the process waits for input.
    """
    if not asks:
        return await process.wait(seconds)
    loop = asyncio.get_running_loop()
    end, looks = loop.time() + seconds, 0
    while (left := end - loop.time()) > 0:
        ended = await process.wait(min(_LOOK_SECONDS, left))
        if ended is not None:
            return ended
        looks = looks + 1 if process.waits_for_input else 0
        if looks >= _ASKING_LOOKS:
            return None
    return process.ended
