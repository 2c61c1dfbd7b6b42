"""The locks of `artoo serve` (`serve.lock`) and of one submission's approval, with their patience.

A lock ends together with its process.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from artoo.contracts.errors import ConfigurationError
from artoo.runtime.changes.submissions import writing
from artoo.workspace.directory import WorkspaceInUse

PATIENCE_SECONDS = 20.0
"""Number of seconds to wait for another decision about the same task. The operator may hold the lock longer while
reading."""
_BETWEEN_TRIES_SECONDS = 0.02


@asynccontextmanager
async def alone(lock: Path, what: str, *, patience: float = PATIENCE_SECONDS) -> AsyncGenerator[None]:
    """Hold the lock on `what`. Raises WorkspaceInUse if another process still holds it after `patience` seconds.
    Raises SandboxError if the lock file cannot be made."""
    until = time.monotonic() + patience
    with writing(lock):
        # The lock is tried periodically. A thread that blocks would not close the descriptor after a cancellation.
        while (descriptor := _try_lock(lock)) is None:
            if time.monotonic() >= until:
                raise WorkspaceInUse(f"another process reviews {what} or decides on it; try again after that")
            await asyncio.sleep(_BETWEEN_TRIES_SECONDS)
    try:
        yield
    finally:
        _let_go(lock, descriptor)


def _try_lock(lock: Path) -> int | None:
    """Try to lock the file. Returns its descriptor. Returns None if it is locked, or if its last holder has removed
    it."""
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # If a file has no name any more, its last holder has removed it, and a lock on it would exclude no one.
        if os.fstat(descriptor).st_nlink:
            return descriptor
    except BlockingIOError:
        pass
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _let_go(lock: Path, descriptor: int) -> None:
    try:
        # a lock file that cannot be removed does no harm
        with suppress(OSError):
            lock.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


FILE = "serve.lock"


@contextmanager
def only_instance(home: Path) -> Generator[None]:
    """Hold the lock of this home. If another process serves the home, raises ConfigurationError that names the
    process."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(home / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationError(
                f"artoo serve runs for {home} already (process {_holder(descriptor)}); "
                "stop that one first, or set ARTOO_HOME to another home"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def serving(home: Path) -> int | None:
    """Return the id of the process that serves this home (0 if the id is not known). Return None if there is
    none."""
    try:
        descriptor = os.open(home / FILE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        # the home was never served, or this process may not read the file
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = _holder(descriptor)
        return int(text) if text.isdigit() else 0
    finally:
        os.close(descriptor)
    return None


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
