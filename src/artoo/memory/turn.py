"""One Dreamer at a time over the processes of a machine: a lock on a file by the store, gone with its holder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from artoo.contracts.errors import MemoryStoreError
from artoo.ports.dream import DreamingElsewhere


@contextmanager
def held(directory: Path) -> Generator[None]:
    """Holds the turn. Raises DreamingElsewhere, or MemoryStoreError when the file cannot be made."""
    file = directory / "dreaming"
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MemoryStoreError(f"Cannot open {file}: {error}. The memory's directory must be writable.") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise DreamingElsewhere(
                f"Another process is dreaming over the memory store in {directory}. Try again when it has ended."
            ) from error
        yield
    finally:
        os.close(descriptor)
