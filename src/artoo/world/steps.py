"""System calls as a program: a list of them, and two hundred bytes of machine code that make one after the other.

Between bubblewrap and a command, and before bubblewrap, some calls must be made by the very process that becomes
the next program. Python would take 15 ms to start there; this takes 0.3 ms. The list is plain data: each call has
its number, its arguments, the errors that do not matter, and what to say when another one comes.

Two things are more than a call. `RESULT` as an argument (or `Block.result_at`) stands for what the call before it
returned, and `EARLIER` for what the one before that did. `FORK` leaves the parent waiting for the child, whose end
it makes its own; the child goes on in the list. A call that fails says what it was and the number of the error,
and ends the program with 126.

A list is made of parts. A part knows only how many calls come before it, so one that says the same for many
commands is made once. The last part may come when the program runs already: it leaves room for that
(`leave_room`), and reads it from a file when it gets there (`go_on_in`).
"""

from __future__ import annotations

import os
import platform
import struct
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

FORK = 57
"""The call at which the child goes on and the parent waits."""

_CODE = bytes.fromhex(
    # rbx = the first call; next: make the call at rbx
    "bb00006000 488b03 488b7b08 488b7310 488b5318 4c8b5320 4c8b4328 4c8b4b30 0f05"
    # an error: refused; where the result is wanted, by the next call and by the one after it: put it there
    "4885c0 7823 488b4b38 e303 488901 488b4b58 e303 488901"
    # after a fork with a child: parent; on: rbx = the next call
    "48833b39 7505 4885c0 7562 4883c360 ebbb"
    # refused: an error below 64 that is allowed: on
    "48f7d8 488b4b40 83f83f 7706 480fa3c1 72e8"
    # write(2, text, length), then the number of the error in digits and a new line; lost: exit_group(126)
    "95 bf02000000 488b7348 488b5350 6a01 58 0f05 95 488d7424ff c6060a b90a000000"
    "31d2 f7f1 80c230 48ffce 8816 85c0 75f0 4889e2 4829f2 b801000000 bf02000000 0f05 bf7e000000 eb35"
    # parent: wait4(-1, status, 0, 0) until it is the child; an error: lost
    "95 4883cfff 4889e6 31d2 4531d2 6a3d 58 0f05 85c0 78e3 39e8 75e7"
    # exit_group(as a shell would say it)
    "8b3c24 89f8 83e07f 7408 8db880000000 eb09 c1ef08 81e7ff000000 b8e7000000 0f05"
)
_CODE_AT, _CALLS_AT, _DATA_AT, _PAGE = 0x400000, 0x600000, 0x10000000, 0x1000
_MAP, _READ_AT, _NOTHING_TO_DO = 9, 17, 39
_READ_AND_WRITE, _PRIVATE_HERE_OF_NO_FILE = 3, 0x32
_LATER_BEGIN = 128
"""Calls before a later part, so that its own begin with a page."""
_LATER_CALLS, _LATER_DATA = 1 << 16, 1 << 22
"""Bytes of room for a later part: twice what the kernel takes as words and variables with a stack of 8 MiB."""
_FIELDS, _RESULT_FIELD, _EARLIER_FIELD = 12, 7, 11


class Returned(Enum):
    """What a call gave back; no descriptor until then, and when the call failed as it may."""

    RESULT = 1
    EARLIER = 2


RESULT: Final = Returned.RESULT
EARLIER: Final = Returned.EARLIER
_NOTHING = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes in memory, given by their address. `result_at`: where in them the result of the call before belongs.
    `leads_to`: further bytes, whose address comes at the end of these."""

    content: bytes
    result_at: int | None = None
    leads_to: bytes | None = None


Argument = int | bytes | tuple[bytes, ...] | Block | Returned
"""A number, a text (ended by a zero), a list of texts (ended by a null), a block, a result."""


def supported() -> bool:
    """Whether there is machine code for this processor."""
    return platform.machine() == "x86_64"


@contextmanager
def run_from_memory(program: bytes, name: str) -> Generator[int, None, None]:
    """A descriptor of a file that holds the program and is nowhere; it is started as `/proc/self/fd/NUMBER`."""
    descriptor = os.memfd_create(name, getattr(os, "MFD_CLOEXEC", 1))
    try:
        os.write(descriptor, program)
        yield descriptor
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Part:
    """Calls that are made, beginning as the `begin`th of all, and what they point to, as the `number`th of such."""

    begin: int
    number: int
    table: bytes
    data: bytes

    @property
    def end(self) -> int:
        """How many calls there are with it."""
        return self.begin + len(self.table) // (8 * _FIELDS)


class Steps:
    """A part in the making: a table of numbers, and apart from it what these point to.

    `begin` and `number` are those of the part. Its first call takes no result.
    """

    def __init__(self, begin: int = 0, number: int = 0) -> None:
        self._begin, self._number = begin, number
        self._calls_at = _CALLS_AT + 8 * _FIELDS * self._begin
        self._data_at = _DATA_AT * (self._number + 1)
        self._table: list[int] = []
        self._data = bytearray()
        self._known: dict[bytes | tuple[bytes, ...], int] = {}

    def call(self, number: int, *arguments: Argument, what: str, allowed: tuple[int, ...] = ()) -> None:
        """Adds a call. `what` is said when it fails, but for the `allowed` errors (numbers below 64)."""
        said = f"sandbox: {what}: error ".encode("utf-8", "surrogateescape")
        table, first = self._table, len(self._table)
        table += (number, 0, 0, 0, 0, 0, 0, 0, _mask(allowed), self._shared(said), len(said), 0)
        for field, argument in enumerate(arguments, first + 1):
            if isinstance(argument, int):
                table[field] = argument % (1 << 64)
            elif isinstance(argument, bytes):
                table[field] = self._shared(argument + b"\0")
            elif isinstance(argument, tuple):
                table[field] = self._listed(argument)
            elif isinstance(argument, Block):
                ahead = () if argument.leads_to is None else (self._shared(argument.leads_to),)
                table[field] = self._added(argument.content + struct.pack(f"<{len(ahead)}Q", *ahead))
                if argument.result_at is not None:
                    table[first - _FIELDS + _RESULT_FIELD] = table[field] + argument.result_at
            else:
                table[field] = _NOTHING
                before = (1, _RESULT_FIELD) if argument is RESULT else (2, _EARLIER_FIELD)
                table[first - _FIELDS * before[0] + before[1]] = self._calls_at + 8 * field

    def fill(self, multiple: int) -> None:
        """Adds calls that do nothing, up to a multiple of so many: the next part begins where it often does."""
        calls = len(self._table) // _FIELDS
        self._table += (_NOTHING_TO_DO, *(0,) * (_FIELDS - 1)) * (-calls % multiple)

    def leave_room(self) -> None:
        """Adds room for a later part, while memory may still be had."""
        for address, size in self._rooms():
            self.call(_MAP, address, size, _READ_AND_WRITE, _PRIVATE_HERE_OF_NO_FILE, -1, 0, what="room")

    def go_on_in(self, descriptor: int) -> None:
        """Ends this part, the only one so far: the list goes on in what the file holds by then (`later_in`)."""
        offset = 0
        for address, size in self._rooms():
            self.call(_READ_AT, descriptor, address, size, offset, what="read what is to be done")
            offset += size
        self.fill(_LATER_BEGIN)
        assert len(self._table) == _LATER_BEGIN * _FIELDS, "too many calls before a later part"

    def _rooms(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Address and size of a later part's calls, and of what they point to."""
        calls_at = _CALLS_AT + 8 * _FIELDS * _LATER_BEGIN
        return (calls_at, _LATER_CALLS), (_DATA_AT * (self._number + 2), _LATER_DATA)

    def part(self) -> Part:
        """What was added so far."""
        table = struct.pack(f"<{len(self._table)}Q", *self._table)
        return Part(self._begin, self._number, table, bytes(self._data))

    def _listed(self, texts: tuple[bytes, ...]) -> int:
        known = self._known.get(texts)
        if known is None:
            addresses = (*(self._shared(one + b"\0") for one in texts), 0)
            known = self._known[texts] = self._added(struct.pack(f"<{len(addresses)}Q", *addresses))
        return known

    def _shared(self, content: bytes) -> int:
        known = self._known.get(content)
        if known is None:
            known = self._known[content] = self._added(content)
        return known

    def _added(self, content: bytes) -> int:
        address = self._data_at + len(self._data)
        self._data += content
        self._data += bytes(8 - len(self._data) % 8)  # a result is eight bytes, and may end beyond its block
        return address


def later() -> Steps:
    """The part after a first one that ends with `go_on_in`."""
    return Steps(_LATER_BEGIN, 1)


def later_in(descriptor: int, part: Part) -> None:
    """Writes a later part into the file from which it is read. Raises ValueError when it is too long, OSError."""
    if len(part.table) > _LATER_CALLS or len(part.data) > _LATER_DATA:
        raise ValueError(
            f"{len(part.data)} bytes of words and variables, more than {_LATER_DATA}: give long text in a file"
        )
    os.pwrite(descriptor, part.table, 0)
    os.pwrite(descriptor, part.data, _LATER_CALLS)


def program(*parts: Part) -> bytes:
    """A whole list as a file (ELF, static) for x86-64. Each part follows the one before it."""
    table = b"".join(part.table for part in parts)
    data_from = _PAGE + _paged(len(table))
    segments = [_segment(6, _PAGE, _CALLS_AT, len(table))]
    for part in parts:
        segments.append(_segment(6, data_from, _DATA_AT * (part.number + 1), len(part.data)))
        data_from += _paged(len(part.data))
    headers = 64 + 56 * (1 + len(segments))
    code = _segment(5, 0, _CODE_AT, headers + len(_CODE))
    header = struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, _CODE_AT + headers, 64, 0, 0, 64, 56, 1 + len(segments), 0, 0, 0
    )
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    begin = b"".join((identity, header, code, *segments, _CODE))
    return b"".join(one.ljust(_paged(len(one)), b"\0") for one in (begin, table, *(part.data for part in parts)))


def _paged(size: int) -> int:
    return -(-size // _PAGE) * _PAGE


@lru_cache(maxsize=64)
def _mask(allowed: tuple[int, ...]) -> int:
    return sum(1 << one for one in set(allowed))


def _segment(rights: int, file_from: int, address: int, size: int) -> bytes:
    return struct.pack("<IIQQQQQQ", 1, rights, file_from, address, address, size, size, _PAGE)
