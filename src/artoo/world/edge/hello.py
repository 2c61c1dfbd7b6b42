"""The name in a TLS ClientHello (RFC 8446 section 4.1.2, RFC 6066 section 3): whom the client asks to be let in to.

Only read, never changed or decrypted. A hello that hides the name it really means (encrypted client hello) is told
apart, because then the name in clear says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

RECORD_HEADER = 5
MOST_BYTES = 64 * 1024
"""A hello with post-quantum keys has some 2,000 bytes; more than this is none."""

HANDSHAKE, _CLIENT_HELLO = 22, 1
_SERVER_NAME, _HOST_NAME = 0, 0
_HIDING = frozenset({0xFE0D, 0xFFCE})
_LONGEST_RECORD = 16384 + 256


class NotAHello(ValueError):
    """These bytes do not begin a TLS connection that can be judged; says why."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a ClientHello says in clear. `name` is empty when it names no host."""

    name: str
    hides: bool


class _Reader:
    """Reads big-endian fields; a field that reaches over the end is an error."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise NotAHello("its TLS hello is cut short")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def block(self, size: int) -> _Reader:
        """What follows a length of `size` bytes."""
        return _Reader(self.take(self.number(size)))


def read_hello(data: bytes) -> Hello | None:
    """The hello at the beginning of a connection; None when more bytes are needed. Raises NotAHello."""
    message = b""
    at = 0
    while True:
        header = data[at : at + RECORD_HEADER]
        if header[:1] not in (b"", bytes([HANDSHAKE])) or header[1:2] not in (b"", b"\x03"):
            raise NotAHello("it does not speak TLS")
        if len(header) < RECORD_HEADER:
            return None
        length = int.from_bytes(header[3:5], "big")
        if not 0 < length <= _LONGEST_RECORD:
            raise NotAHello("its TLS hello is malformed")
        message += data[at + RECORD_HEADER : at + RECORD_HEADER + length]
        at += RECORD_HEADER + length
        if message and message[0] != _CLIENT_HELLO:
            raise NotAHello("it does not begin with a TLS hello")
        if len(message) >= 4:
            needed = 4 + int.from_bytes(message[1:4], "big")
            if needed > MOST_BYTES:
                raise NotAHello("its TLS hello is too long")
            if len(message) >= needed:
                return _parse(message[4:needed])
        if at >= len(data):
            return None


def _parse(body: bytes) -> Hello:
    reader = _Reader(body)
    reader.take(2 + 32)
    reader.block(1)
    reader.block(2)
    reader.block(1)
    if not reader.left:
        return Hello("", hides=False)
    extensions = reader.block(2)
    name, hides, seen = "", False, set[int]()
    while extensions.left:
        kind = extensions.number(2)
        content = extensions.block(2)
        if kind in seen:
            raise NotAHello("its TLS hello says one thing twice")
        seen.add(kind)
        hides = hides or kind in _HIDING
        if kind == _SERVER_NAME:
            name = _server_name(content)
    return Hello(name, hides)


def _server_name(content: _Reader) -> str:
    listed = content.block(2)
    kind, name = listed.number(1), listed.block(2)
    if kind != _HOST_NAME or listed.left or content.left:
        raise NotAHello("its TLS hello names more than one host")
    try:
        return name.take(name.left).decode("ascii")
    except UnicodeDecodeError as error:
        raise NotAHello("the name in its TLS hello is not ASCII") from error
