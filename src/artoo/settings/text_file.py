"""Read a file of settings as text: small, UTF-8, and distinct from a missing file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from artoo.contracts.errors import ConfigurationError
from artoo.disk.whole import write_whole

# Bytes. Settings are a page or two; anything larger is some other file.
LARGEST_FILE = 256 * 1024


def bytes_of(path: Path) -> bytes | None:
    """Return the file's content, None if there is no file. Raises ConfigurationError: unreadable, too large, no
    file, a link that leads nowhere.

    Never waits: a pipe without a writer would block the reader.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as file:  # Path.open takes no opener
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigurationError(f"{path} is no ordinary file; put a text file there")
            raw = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        if path.is_symlink():  # a link is not nothing: its target may not be mounted
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
    """Return the text of a file's content. Raises ConfigurationError with the line that is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from error


def put(path: Path, text: str) -> None:
    """Writes the file, whole or not at all. Raises ConfigurationError: it cannot be written.

    Who may read it, and a link that leads to it, stay as they were; a new one is its owner's alone.
    """
    try:
        place = path.resolve()
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(place, text.encode())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written: {error.strerror}") from error
