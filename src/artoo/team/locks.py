"""Lock a home for one `artoo serve`, and a submission for one ruling; a dead process keeps no lock."""

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
"""How long a ruling waits for another one of the same task. The operator, who reads, may take longer."""
_BETWEEN_TRIES_SECONDS = 0.02


@asynccontextmanager
async def alone(lock: Path, what: str, *, patience: float = PATIENCE_SECONDS) -> AsyncGenerator[None]:
    """Hold the lock on `what`. Raises WorkspaceInUse when another process still has it after `patience` seconds,
    and SandboxError when the file cannot be made.
    """
    until = time.monotonic() + patience
    with writing(lock):
        # No thread waits for it: when a waiter is cancelled, no one would close what the thread gets afterwards.
        while (descriptor := _try_lock(lock)) is None:
            if time.monotonic() >= until:
                raise WorkspaceInUse(f"another process reviews {what} or decides on it; try again after that")
            await asyncio.sleep(_BETWEEN_TRIES_SECONDS)
    try:
        yield
    finally:
        _let_go(lock, descriptor)


def _try_lock(lock: Path) -> int | None:
    """Return a descriptor that holds it; None when it is held, or its last holder has just removed it."""
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A file without a name was removed by its last holder: a lock on it locks no one out.
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
        # A lock file that cannot be removed does no harm.
        with suppress(OSError):
            lock.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


FILE = "serve.lock"


@contextmanager
def only_instance(home: Path) -> Generator[None]:
    """Hold this home's lock. Raises ConfigurationError, naming the process, while another one serves it."""
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
    """Return the process that serves this home, None when there is none."""
    try:
        descriptor = os.open(home / FILE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        # Never served, or not ours to look at.
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
