"""Opening files that others named: only plain files, never a wait, whatever encoding; bounded."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from artoo.contracts.errors import ToolError

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_SIGNATURES = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3", "an SQLite database"),
)


class NotPlainFile(ToolError):
    """The path leads to something that cannot be read like a file."""


@dataclass(frozen=True, slots=True)
class Text:
    """Decoded text and the encoding that it is in (`utf-8` unless something else fits better)."""

    text: str
    encoding: str


@contextmanager
def open_plain(path: Path) -> Generator[tuple[BinaryIO, int]]:
    """Opens a plain file for reading, with its size in bytes. A last link is refused, pipes are never waited for.

    Raises OSError as `open` does, NotPlainFile for anything that is not a plain file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPlainFile("it is a link, not a file") from error
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):
            raise NotPlainFile("it is a socket, not a file") from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            kind = next((name for test, name in _KINDS if test(status.st_mode)), "not a file")
            raise NotPlainFile(f"it is {kind}, not a file")
        yield file, status.st_size


def read_limited(path: Path, limit: int) -> tuple[bytes, int]:
    """At most `limit` bytes of a plain file, and its size. Raises as `open_plain`."""
    with open_plain(path) as (file, size):
        return file.read(limit), size


def kind_of_bytes(sample: bytes) -> str:
    """What binary data is, by its first bytes."""
    return next((name for start, name in _SIGNATURES if sample.startswith(start)), "binary data")


def decode(data: bytes, *, whole: bool = True) -> Text | None:
    """Text in whatever encoding it is, None when it is not text. `whole` false: the last character may be cut."""
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            return Text(data[2:].decode(encoding, "replace"), encoding)
    if b"\0" in data:
        return None
    data = data.removeprefix(codecs.BOM_UTF8)
    for encoding in ("utf-8", "gb18030"):
        if encoding == "gb18030" and not _like_chinese(data):
            continue
        try:
            return Text(codecs.getincrementaldecoder(encoding)().decode(data, final=whole), encoding)
        except UnicodeDecodeError:
            continue
    text = data.decode("cp1252", "replace")
    odd = sum(1 for one in text if one == "\ufffd" or (ord(one) < 32 and one not in "\t\n\r\f\x1b"))
    return None if odd > len(text) // 20 else Text(text, "cp1252")


def _like_chinese(data: bytes) -> bool:
    """Whether most lead bytes are those of common Chinese characters and punctuation; accents are elsewhere."""
    leads = 0
    common = 0
    position = 0
    while position < len(data):
        if data[position] < 0x80:
            position += 1
            continue
        leads += 1
        common += 0xA1 <= data[position] <= 0xA3 or 0xB0 <= data[position] <= 0xD7
        position += 2
    return leads > 0 and common >= 0.8 * leads
