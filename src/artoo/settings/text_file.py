"""Read and write small settings files, with their size limit.

An empty file is not the same as a missing one.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from artoo.contracts.errors import ConfigurationError
from artoo.disk.whole import write_whole

# Maximum number of bytes. Settings take a page or two, so a larger file is something else.
LARGEST_FILE = 256 * 1024


def bytes_of(path: Path) -> bytes | None:
    """Return the content of the file. Return None if the file does not exist. Raises ConfigurationError if the file
    is unreadable, too large or not regular, or if it is a broken link.

    The file is opened in non-blocking mode, because otherwise a pipe without a writer would block the reader."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:  # `Path.open` has no parameter for an opener.
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigurationError(f"{path} is no ordinary file; put a text file there")
            raw = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        if path.is_symlink():  # A broken link is an error, because its target may just not be mounted.
            raise ConfigurationError(f"{path} leads to {path.readlink()}, and nothing is there") from None
        return None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    if len(raw) > LARGEST_FILE:
        raise ConfigurationError(f"{path} is larger than {LARGEST_FILE} bytes; is it a file of settings?")
    return raw


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def decoded(raw: bytes, path: Path) -> str:
    """Decode a file's content. Raises ConfigurationError, which names the line that is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from error


def put(path: Path, text: str) -> None:
    """Write the file atomically. Raises ConfigurationError if the file cannot be written.

    The permissions of the file are preserved, and so is a link to it. A new file can only be accessed by its
    owner."""
    try:
        place = path.resolve()
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(place, text.encode())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error
