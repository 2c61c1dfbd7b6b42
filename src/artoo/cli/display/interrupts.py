"""The handling of Ctrl-C and signals, which interrupt the turn, then the task, then the command.

The current turn is interrupted only if the task can be steered.
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
"""Number of seconds that the clean-up at an exit may take. After that, the process ends without waiting for the
clean-up."""

SHOW_CURSOR = "\x1b[?25h"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Handles the signals of one command. Use it as a context manager in the command's asyncio task.

    While a task runs, the first SIGINT interrupts its current turn, if the task can be steered. The second one asks
    the task to end, and the third one cancels the command. Between the tasks of a conversation, SIGINT does
    nothing, because the prompt reads the key itself. Any other signal cancels the command. If cancelling takes
    longer than a second, the process makes the cursor visible and exits.
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
        """Handle signals for the task that runs in the block. `stop` asks it to end. `hold` interrupts its turn if
        that is possible."""
        self._stop, self._asked = stop, False
        self._hold = hold or _cannot
        try:
            yield
        finally:
            self._stop, self._hold = None, _cannot

    def _on_signal(self, number: int, _: object) -> None:
        """Pass a signal to the event loop. If the command must end, also start the timer.

        `add_signal_handler` is not used. Its handlers wait for the event loop, which a clean-up may block.
        """
        assert self._loop is not None
        if self._ends_command(number):
            self._leave_soon()
        # A signal handler may run between any two instructions, so only the event loop changes the state.
        self._loop.call_soon_threadsafe(self._received, number)

    def _ends_command(self, number: int) -> bool:
        """Return whether the next signal ends the command, because there is no task left to stop."""
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
        """End the process after `GRACE_SECONDS`. At the second call, end it at once."""
        if self._leaving is not None:
            leave()
        self._leaving = threading.Timer(GRACE_SECONDS, leave)
        self._leaving.daemon = True
        self._leaving.start()


def _cannot() -> bool:
    """Return False, because the running task cannot be steered."""
    return False


def leave() -> None:
    """End the process at once. No file is left half written, because results and files are written atomically."""
    if sys.stderr.isatty():
        sys.stderr.write(SHOW_CURSOR + "\n")
        sys.stderr.flush()
    os._exit(INTERRUPTED)
