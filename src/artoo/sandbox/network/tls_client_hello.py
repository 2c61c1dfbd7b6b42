"""Parse the server name (SNI) of a TLS ClientHello, and detect an encrypted one.

Reference: RFC 8446 section 4.1.2, RFC 6066 section 3.

The bytes of the connection are never changed or decrypted. An encrypted client hello must be detected, because the
unencrypted name in it is not the real host.
"""

from __future__ import annotations

from dataclasses import dataclass

RECORD_HEADER = 5
MOST_BYTES = 64 * 1024
"""The maximum number of bytes of a hello. A longer one is refused. Even with post-quantum keys, a hello has only
some 2,000 bytes."""

HANDSHAKE, _CLIENT_HELLO = 22, 1
_SERVER_NAME, _HOST_NAME = 0, 0
_ENCRYPTED = frozenset({0xFE0D, 0xFFCE})
_LONGEST_RECORD = 16384 + 256


class NotAClientHello(ValueError):
    """Raised for bytes that are not the start of a TLS connection which can be checked. The message is the
    reason."""


@dataclass(frozen=True, slots=True)
class ClientHello:
    """The part of a ClientHello that can be read. `name` is empty if it contains no host name."""

    name: str
    is_encrypted: bool


class _FieldReader:
    """Reads big-endian fields. Raises NotAClientHello for a field that extends past the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise NotAClientHello("its TLS hello is cut short")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def block(self, size: int) -> _FieldReader:
        """Read a field that begins with its length in `size` bytes."""
        return _FieldReader(self.take(self.number(size)))


def read_client_hello(data: bytes) -> ClientHello | None:
    """Parse the start of a connection. Returns None if more bytes are needed. Raises NotAClientHello."""
    message = b""
    at = 0
    while True:
        header = data[at : at + RECORD_HEADER]
        if header[:1] not in (b"", bytes([HANDSHAKE])) or header[1:2] not in (b"", b"\x03"):
            raise NotAClientHello("it does not speak TLS")
        if len(header) < RECORD_HEADER:
            return None
        length = int.from_bytes(header[3:5], "big")
        if not 0 < length <= _LONGEST_RECORD:
            raise NotAClientHello("its TLS hello is malformed")
        message += data[at + RECORD_HEADER : at + RECORD_HEADER + length]
        at += RECORD_HEADER + length
        if message and message[0] != _CLIENT_HELLO:
            raise NotAClientHello("it does not begin with a TLS hello")
        if len(message) >= 4:
            needed = 4 + int.from_bytes(message[1:4], "big")
            if needed > MOST_BYTES:
                raise NotAClientHello("its TLS hello is too long")
            if len(message) >= needed:
                return _parse(message[4:needed])
        if at >= len(data):
            return None


def _parse(body: bytes) -> ClientHello:
    reader = _FieldReader(body)
    reader.take(2 + 32)
    reader.block(1)
    reader.block(2)
    reader.block(1)
    if not reader.left:
        return ClientHello("", is_encrypted=False)
    extensions = reader.block(2)
    name, is_encrypted, seen = "", False, set[int]()
    while extensions.left:
        kind = extensions.number(2)
        content = extensions.block(2)
        if kind in seen:
            raise NotAClientHello("its TLS hello says one thing twice")
        seen.add(kind)
        is_encrypted = is_encrypted or kind in _ENCRYPTED
        if kind == _SERVER_NAME:
            name = _server_name(content)
    return ClientHello(name, is_encrypted)


def _server_name(content: _FieldReader) -> str:
    listed = content.block(2)
    kind, name = listed.number(1), listed.block(2)
    if kind != _HOST_NAME or listed.left or content.left:
        raise NotAClientHello("its TLS hello names more than one host")
    try:
        return name.take(name.left).decode("ascii")
    except UnicodeDecodeError as error:
        raise NotAClientHello("the name in its TLS hello is not ASCII") from error
