"""Sync a whole file system to disk with one call, instead of one call for each file."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path


def sync_file_system(place: Path) -> None:
    """Sync all files on the file system of `place` to disk. This function blocks.

    Raises OSError if some data could not be written."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_file_system_of(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system_of(descriptor: int) -> None:
    """Sync all files on the file system of an open file to disk. This function blocks and raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "syncfs"):  # On macOS only all file systems can be synced at once.
        os.sync()
        return
    if library.syncfs(descriptor) == 0:
        return
    code = ctypes.get_errno()
    if code != errno.ENOSYS:
        raise OSError(code, os.strerror(code))
    os.sync()
