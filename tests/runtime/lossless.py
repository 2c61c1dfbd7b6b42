"""Consumers of the stream that may lose nothing, each as the tests of load see it.

To put another one under the same load, write such a class and add it to `CONSUMERS` of test_burst.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from artoo.bus.inprocess import InProcessBus
from artoo.redaction import Redactor
from artoo.runtime.task.task_log import recorded
from artoo.tasklog.reader import find_log


class LosslessConsumer(Protocol):
    """One consumer. While `attached` is entered it takes what is said; afterwards `kept` reads its files."""

    def attached(self, bus: InProcessBus, home: Path) -> AbstractAsyncContextManager[object]:
        """Attaches it to the stream as the runtime does; leaving writes what is still queued."""
        ...

    def kept(self, home: Path, task_id: str) -> Sequence[str]:
        """The ids of the task's messages that it kept, in order."""
        ...


class TaskLogConsumer:
    """The task log: every message of a task, in its file."""

    def attached(self, bus: InProcessBus, home: Path) -> AbstractAsyncContextManager[object]:
        return recorded(bus, home, Redactor())

    def kept(self, home: Path, task_id: str) -> Sequence[str]:
        return [str(fields["id"]) for _, fields in find_log(home, task_id).fields() if "id" in fields]
