"""Open, read and decode a plain file safely, with detection of encoding and binary kind."""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from artoo.contracts.errors import ToolError
from artoo.ports.workspace import Files

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link"),
)
_NOT_PLAIN = (errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.ENXIO, errno.EOPNOTSUPP)
"""The errors by which `Files.open` refuses everything that is not a regular file."""
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
    """Raised for a path that leads to something that cannot be read like a file."""


_UTF8_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_LETTERS_IN_A_ROW = re.compile(rb"[\xc0-\xff]{3,}")
_CYRILLIC = (("cp1251", b"\xee\xe5\xe0\xe8"), ("koi8-r", b"\xcf\xc5\xc1\xc9"))
"""Cyrillic encodings, each with the bytes of its letters о, е, а and и. These make up a third of the letters of a
Russian text."""


@dataclass(frozen=True, slots=True)
class Text:
    """Decoded text, with the encoding of its file (`utf-8` unless another one fits better) and its byte order mark.
    Line ends in `text` are the same as in the file. `broken`: true if some bytes of the file are not valid in the
    encoding.
    """

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    broken: bool = False

    @property
    def crlf(self) -> bool:
        """Check whether most lines end with CRLF."""
        return 2 * self.text.count("\r\n") > self.text.count("\n")

    @property
    def mixed(self) -> bool:
        """Check whether some lines end with CRLF and others do not."""
        return 0 < self.text.count("\r\n") < self.text.count("\n")

    @property
    def form(self) -> str:
        """Describe encoding and line ends in a few words. Return "" if they are UTF-8 and LF."""
        return ", ".join(filter(None, (self._encoding(), self._line_ends())))

    def with_ends(self, text: str) -> str:
        """Convert the line ends of `text` to those of the file."""
        # text that already contains CRLF is not changed
        return text.replace("\n", "\r\n") if self.crlf and "\r\n" not in text else text

    def bytes_of(self, text: str) -> bytes:
        """Encode `text` in the encoding of this file, preceded by the file's byte order mark. Raises
        UnicodeEncodeError."""
        return self.mark + text.removeprefix("\ufeff" if self.mark else "").encode(self.encoding, "surrogateescape")

    def _encoding(self) -> str:
        if self.encoding.startswith("utf-16"):
            return f"read as {self.encoding.upper()}"
        if self.encoding != "utf-8":
            return f"not UTF-8, read as {self.encoding}"
        return "UTF-8 with broken bytes" if self.broken else "UTF-8 with a byte order mark" if self.mark else ""

    def _line_ends(self) -> str:
        return "line ends LF and CRLF" if self.mixed else "line ends CRLF" if self.crlf else ""


@contextmanager
def open_plain(files: Files, path: Path) -> Generator[tuple[BinaryIO, int]]:
    """Open the regular file at a resolved path for reading. Yield the file and its size in bytes. Never blocks on a
    pipe.

    Raises OSError as `Files.open` does, and NotPlainFile for anything that is not a regular file.
    """
    try:
        file = files.open(path)
    except OSError as error:
        if error.errno in _NOT_PLAIN:
            raise NotPlainFile(f"it is {_kind_at(files, path)}, not a file") from error
        raise
    with file:
        yield file, os.fstat(file.fileno()).st_size


def _kind_at(files: Files, path: Path) -> str:
    """Name the kind of object that is at a path which could not be opened as a file."""
    found = files.stat(path)
    return (
        "something else" if found is None else next((name for is_it, name in _KINDS if is_it(found.mode)), "a link")
    )


def read_limited(files: Files, path: Path, limit: int) -> tuple[bytes, int]:
    """Return at most `limit` bytes of the regular file at a resolved path, and the size of the file. Raises as
    `open_plain`."""
    with open_plain(files, path) as (file, size):
        return file.read(limit), size


def kind_of_bytes(sample: bytes) -> str:
    """Describe the kind of binary data by its first bytes."""
    return next((name for start, name in _SIGNATURES if sample.startswith(start)), "binary data")


def decode(data: bytes, *, whole: bool = True, errors: str = "replace") -> Text | None:
    """Decode text in any known encoding. Return None if the data is not text. `whole`: false if the last character
    may be incomplete.

    `errors` is the error handler for bytes that are not valid in the encoding. With `surrogateescape` they can be
    written back.
    """
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            return Text(data[2:].decode(encoding, "replace"), encoding, mark)
    if b"\0" in data:
        return None
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    data = data.removeprefix(mark)
    for encoding in ("utf-8", "gb18030"):
        if encoding == "gb18030" and not _like_chinese(data):
            continue
        try:
            return Text(codecs.getincrementaldecoder(encoding)().decode(data, final=whole), encoding, mark)
        except UnicodeDecodeError:
            continue
    if mark or _mostly_utf8(data):
        utf8 = codecs.getincrementaldecoder("utf-8")(errors)
        return Text(utf8.decode(data, final=whole), "utf-8", mark, broken=True)
    encoding = _cyrillic(data) or "cp1252"
    text = data.decode(encoding, errors)
    odd = sum(map(_is_odd, text))
    return None if odd > len(text) // 20 else Text(text, encoding)


def exact_text(data: bytes) -> Text | None:
    """Decode text so that `bytes_of` encodes it to exactly the same bytes. Return None if that is impossible."""
    text = decode(data, errors="surrogateescape")
    try:
        return text if text is not None and text.bytes_of(text.text) == data else None
    except UnicodeEncodeError:
        return None


def _is_odd(one: str) -> bool:
    return one == "\ufffd" or "\udc80" <= one <= "\udcff" or (ord(one) < 32 and one not in "\t\n\r\f\x1b")


def _mostly_utf8(data: bytes) -> bool:
    """Check whether there are more valid UTF-8 characters than invalid bytes, because one invalid byte does not
    prove another encoding."""
    rest, characters = _UTF8_SEQUENCE.subn(b"", data)
    return characters > len(_NOT_ASCII.findall(rest))


def _cyrillic(data: bytes) -> str | None:
    """Return the Cyrillic encoding of a text whose words are Cyrillic, or None. In other languages the accented
    letters are between ASCII letters, so that whole words of non-ASCII bytes do not occur.
    """
    words = b"".join(_LETTERS_IN_A_ROW.findall(data))
    if 2 * len(words) < len(_NOT_ASCII.findall(data)):
        return None
    return next(
        (name for name, common in _CYRILLIC if words and 4 * sum(map(words.count, common)) > len(words)), None
    )


def _like_chinese(data: bytes) -> bool:
    """Check whether most pairs of bytes are common Chinese characters or punctuation. In other languages an ASCII
    letter usually follows an accented one.
    """
    leads = 0
    common = 0
    position = 0
    while position < len(data):
        if data[position] < 0x80:
            position += 1
            continue
        leads += 1
        lead, trail = data[position], data[position + 1 : position + 2]
        common += (0xA1 <= lead <= 0xA3 or 0xB0 <= lead <= 0xD7) and trail >= b"\xa1"
        position += 2
    return leads > 0 and common >= 0.8 * leads
