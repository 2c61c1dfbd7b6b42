"""One `artoo serve` a home: a lock that a dead process cannot keep."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from artoo.contracts.errors import ConfigurationError

FILE = "serve.lock"


@contextmanager
def only_instance(home: Path) -> Generator[None]:
    """Raises ConfigurationError, naming the process, while another one serves this home."""
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
    """The process that serves this home, None when there is none."""
    try:
        descriptor = os.open(home / FILE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # never served, or not ours to look at
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
