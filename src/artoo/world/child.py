"""A program that was started, until its end, which the kernel tells.

Not asyncio's subprocess: before Python 3.12 that begins a thread for each program, which takes as long as to start
the program does, and whether its `wait` waits for the pipes too depends on Python's version.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path


class Child:
    """One program, the leader of its own session. To be closed; used in the event loop that started it."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self._gone = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._told_by: int | None = None
        try:
            self._told_by = os.pidfd_open(popen.pid)
        except (AttributeError, OSError):  # neither macOS nor an old kernel has that, nor a full table of files
            threading.Thread(target=self._await_end, daemon=True, name="artoo-child").start()
        else:
            self._loop.add_reader(self._told_by, self._ended)

    @classmethod
    def started(
        cls,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        pass_fds: Sequence[int],
        *,
        fed: bool,
        out: int,
        err: int,
    ) -> Child:
        """Starts it. `fed`: it will be sent its input. `out`, `err`: descriptors. Raises OSError, ValueError."""
        popen = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if fed else subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=env,
            cwd=cwd,
            pass_fds=pass_fds,
            start_new_session=True,
            bufsize=0,
        )
        return cls(popen)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """None as long as nobody has noticed its end."""
        return self._popen.returncode

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """To that very program, if it is there."""
        self._popen.send_signal(number)

    async def wait(self) -> int:
        """Its exit code, as `subprocess` counts. Whoever has its output or its input does not matter."""
        await self._gone.wait()
        return self._popen.wait()

    async def feed(self, data: bytes) -> None:
        """Sends its whole input; less, if it does not want it."""
        stdin = self._popen.stdin
        assert stdin is not None
        left = memoryview(data)
        os.set_blocking(stdin.fileno(), False)
        with stdin, suppress(BrokenPipeError, ConnectionResetError):
            while left:
                try:
                    left = left[os.write(stdin.fileno(), left) :]
                except BlockingIOError:
                    await self._until_writable(stdin.fileno())

    def close(self) -> None:
        """Forgets it."""
        if self._told_by is not None:
            self._loop.remove_reader(self._told_by)
            os.close(self._told_by)
            self._told_by = None
        if self._popen.stdin is not None:
            self._popen.stdin.close()
        if (
            self._popen.poll() is None
        ):  # who waited for its end was cancelled: it is taken off the kernel's table later
            threading.Thread(target=self._popen.wait, daemon=True, name="artoo-child").start()

    async def _until_writable(self, descriptor: int) -> None:
        ready = asyncio.Event()
        self._loop.add_writer(descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_writer(descriptor)

    def _ended(self) -> None:
        assert self._told_by is not None
        self._loop.remove_reader(self._told_by)
        self._popen.poll()
        self._gone.set()

    def _await_end(self) -> None:
        self._popen.wait()
        with suppress(RuntimeError):  # nobody waits any more: the loop is closed
            self._loop.call_soon_threadsafe(self._gone.set)
