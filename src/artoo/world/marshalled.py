"""Compiled Python code compared without loading it: `marshal` of what a stranger wrote is not safe to load.

Two streams that name the same values in another order of references have the same digest. Only what the compiler
writes is understood; everything else is refused.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

_FLAG_REF = 0x80
_DEEPEST = 60
_LONGS_OF_CODE = 5
_CHILDREN_BEFORE_LINE = 8
_FILENAME = 5


class NotCode(Exception):
    """This is not a stream that the compiler of this Python writes."""


@dataclass(slots=True)
class Reader:
    """One stream. `filename` is that of its outermost code, once `digest` has read it."""

    data: bytes
    place: int = 0
    depth: int = 0
    filename: str | None = None
    _refs: list[tuple[bytes, bytes] | None] = field(default_factory=list[tuple[bytes, bytes] | None])

    def digest(self) -> bytes:
        """Of the whole stream, which must be one code object. Raises NotCode."""
        if not self.data or self.data[0] & ~_FLAG_REF != ord("c"):
            raise NotCode
        found, _ = self._value()
        if self.place != len(self.data):
            raise NotCode
        return found

    def _value(self) -> tuple[bytes, bytes]:
        """A digest, and the text of a string (else nothing)."""
        if self.depth > _DEEPEST:
            raise NotCode
        self.depth += 1
        byte = self._take(1)[0]
        kind, kept = chr(byte & ~_FLAG_REF), bool(byte & _FLAG_REF)
        slot = len(self._refs)
        if kept:
            self._refs.append(None)
        read = _KINDS.get(kind)
        if read is None:
            raise NotCode
        found = read(self)
        if kept:
            self._refs[slot] = found
        self.depth -= 1
        return found

    def _take(self, length: int) -> bytes:
        if length < 0 or self.place + length > len(self.data):
            raise NotCode
        taken = self.data[self.place : self.place + length]
        self.place += length
        return taken

    def _long(self) -> int:
        return struct.unpack("<i", self._take(4))[0]

    def reference(self) -> tuple[bytes, bytes]:
        number = self._long()
        found = self._refs[number] if 0 <= number < len(self._refs) else None
        if found is None:
            raise NotCode
        return found

    def text(self, length: int) -> tuple[bytes, bytes]:
        content = self._take(length)
        return _told(b"u", content), content

    def short_text(self) -> tuple[bytes, bytes]:
        return self.text(self._take(1)[0])

    def long_text(self) -> tuple[bytes, bytes]:
        return self.text(self._long())

    def raw(self) -> tuple[bytes, bytes]:
        return _told(b"s", self._take(self._long())), b""

    def small(self) -> tuple[bytes, bytes]:
        return _told(b"i", str(self._long()).encode()), b""

    def large(self) -> tuple[bytes, bytes]:
        length = self._long()
        digits = struct.unpack(f"<{abs(length)}H", self._take(2 * abs(length)))
        if any(digit >> 15 for digit in digits):
            raise NotCode
        value = sum(digit << (15 * number) for number, digit in enumerate(digits))
        return _told(b"i", hex(-value if length < 0 else value).encode()), b""

    def floating(self) -> tuple[bytes, bytes]:
        return _told(b"g", self._take(8)), b""

    def complex(self) -> tuple[bytes, bytes]:
        return _told(b"y", self._take(16)), b""

    def items(self, count: int, kind: bytes) -> tuple[bytes, bytes]:
        if count < 0 or count > len(self.data) - self.place:
            raise NotCode
        found = [self._value()[0] for _ in range(count)]
        return _told(kind, *(sorted(found) if kind == b">" else found)), b""

    def small_tuple(self) -> tuple[bytes, bytes]:
        return self.items(self._take(1)[0], b"(")

    def tuple(self) -> tuple[bytes, bytes]:
        return self.items(self._long(), b"(")

    def frozenset(self) -> tuple[bytes, bytes]:
        return self.items(self._long(), b">")

    def slice(self) -> tuple[bytes, bytes]:
        return self.items(3, b":")

    def code(self) -> tuple[bytes, bytes]:
        """The layout since Python 3.11."""
        numbers = [str(self._long()).encode() for _ in range(_LONGS_OF_CODE)]
        children = [self._value() for _ in range(_CHILDREN_BEFORE_LINE)]
        if self.depth == 1:
            self.filename = children[_FILENAME][1].decode("utf-8", "surrogatepass")
        line = str(self._long()).encode()
        tables = [self._value()[0], self._value()[0]]
        return _told(b"c", *numbers, *(one for one, _ in children), line, *tables), b""


def _constant(kind: str) -> Callable[[Reader], tuple[bytes, bytes]]:
    told = _told(kind.encode())
    return lambda _: (told, b"")


def _told(kind: bytes, *parts: bytes) -> bytes:
    total = hashlib.sha256(kind)
    for part in parts:
        total.update(len(part).to_bytes(8, "little") + part)
    return total.digest()


_KINDS: dict[str, Callable[[Reader], tuple[bytes, bytes]]] = {
    **{kind: _constant(kind) for kind in "NTF.S"},
    "r": Reader.reference,
    "i": Reader.small,
    "l": Reader.large,
    "g": Reader.floating,
    "y": Reader.complex,
    "s": Reader.raw,
    **dict.fromkeys("zZ", Reader.short_text),
    **dict.fromkeys("uaAt", Reader.long_text),
    ")": Reader.small_tuple,
    "(": Reader.tuple,
    ">": Reader.frozenset,
    ":": Reader.slice,
    "c": Reader.code,
}
