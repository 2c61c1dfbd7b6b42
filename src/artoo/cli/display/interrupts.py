"""The handling of Ctrl-C and signals, which interrupt the turn, then the task, then the command.

The turn is interrupted if that is possible.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Self

from artoo.cli.commands.exit_codes import INTERRUPTED

GRACE_SECONDS = 1.0
"""How long clean-up may take at an exit. After this time the process ends without waiting for it."""

SHOW_CURSOR = "\x1b[?25h"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """The signal handling of one command. Use it as a context manager in the command's asyncio task.

    During a task, the first SIGINT interrupts the present turn, if the task can be steered. The next signal asks
    the task to end, and the next one cancels the command. Between tasks, SIGINT does nothing in a conversation,
    because the prompt reads the key. Any other signal cancels the command. If cancelling takes longer than a
    second, the process exits, after making the cursor visible.
    """

    def __init__(self, *, conversation: bool = False) -> None:
        self._conversation = conversation
        self._stop: Callable[[], object] | None = None
        self._hold: Callable[[], bool] = _cannot
        self._asked = False
        self._before: dict[int, Any] = {}
        self._leaving: threading.Timer | None = None
        self._command: asyncio.Task[object] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Self:
        self._command = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            self._before[number] = signal.getsignal(number)
            signal.signal(number, self._on_signal)
        self._loop = loop
        return self

    def __exit__(self, *_: object) -> None:
        for number in _SIGNALS:
            signal.signal(number, self._before[number])

    @contextmanager
    def during(self, stop: Callable[[], object], hold: Callable[[], bool] | None = None) -> Generator[None]:
        """Handle signals for the block's task. `stop` asks it to end; `hold` interrupts its turn if possible."""
        self._stop, self._asked = stop, False
        self._hold = hold or _cannot
        try:
            yield
        finally:
            self._stop, self._hold = None, _cannot

    def _on_signal(self, number: int, _: object) -> None:
        """Pass a signal to the event loop, and start the timer if the command must end.

        `add_signal_handler` is not used, because its handlers wait for the loop, which a clean-up may block.
        """
        assert self._loop is not None
        if self._ends_command(number):
            self._leave_soon()
        # A signal handler may run between any two instructions, so the state is changed only in the loop.
        self._loop.call_soon_threadsafe(self._received, number)

    def _ends_command(self, number: int) -> bool:
        """Check whether the next signal must end the command, because no task is left to stop."""
        if self._stop is not None:
            return self._asked
        return not self._conversation or number != signal.SIGINT

    def _received(self, number: int) -> None:
        if self._stop is not None and number == signal.SIGINT and not self._asked and self._hold():
            return
        if self._stop is not None and not self._asked:
            self._asked = True
            self._stop()
        elif self._ends_command(number) and self._command is not None:
            self._command.cancel()

    def _leave_soon(self) -> None:
        """End the process after `GRACE_SECONDS`, or immediately at the second call."""
        if self._leaving is not None:
            leave()
        self._leaving = threading.Timer(GRACE_SECONDS, leave)
        self._leaving.daemon = True
        self._leaving.start()


def _cannot() -> bool:
    """Return False, because the running task cannot be steered."""
    return False


def leave() -> None:
    """Exit immediately. Nothing is left half written, because results and files are written atomically."""
    if sys.stderr.isatty():
        sys.stderr.write(SHOW_CURSOR + "\n")
        sys.stderr.flush()
    os._exit(INTERRUPTED)
