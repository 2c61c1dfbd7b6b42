"""Changed paths of a command, with kinds, node types, and printable paths that show every byte.

Reference: SPEC section 8.

The records are parts of messages (the question to the user, the evidence for the validator), so they consist of
plain data. Paths of the operating system are bytes. Here they are *printable paths*, which are texts that show
every byte and that `path_bytes` converts back. A newline, an escape sequence or a right-to-left mark in a name
therefore cannot imitate a line of a prompt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from enum import StrEnum
from functools import cache
from itertools import accumulate
from operator import attrgetter

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from artoo.contracts.base import Contract

_ESCAPE = re.compile(rb"\\(\\|n|t|x[0-9a-f]{2})")
_PLAIN_ASCII = re.compile(rb"[ -\[\]-~]*")


# Ranges of the Unicode property Default_Ignorable_Code_Point. Fonts do not draw these characters.
_DEFAULT_IGNORABLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip

# Symbols whose glyph is empty although no Unicode property says so.
_BLANK = frozenset("\u2800\U0001d159")


def is_visible(character: str) -> bool:
    """Return whether a character is visible. It is if it is no control character, no blank except the space, and
    not ignorable."""
    if character.isascii():
        return character.isprintable()
    return character.isprintable() and character not in _BLANK and not is_ignorable(character)


def is_ignorable(character: str) -> bool:
    """Return whether fonts draw nothing for the character."""
    return any(first <= ord(character) <= last for first, last in _DEFAULT_IGNORABLE)


def printable_path(raw: bytes) -> str:
    """Return `raw` as printable text. Bytes that are not plainly visible are written as `\\\\`, `\\n`, `\\t` or
    `\\xNN`."""
    if _PLAIN_ASCII.fullmatch(raw):
        return raw.decode("ascii")
    return "".join(_printable_character(character) for character in raw.decode("utf-8", "surrogateescape"))


def _printable_character(character: str) -> str:
    known = {"\\": "\\\\", "\n": "\\n", "\t": "\\t"}.get(character)
    if known is not None:
        return known
    if is_visible(character):
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def path_bytes(printable: str) -> bytes:
    """Return the bytes of a printable path. This is the inverse of `printable_path`."""

    def unescape(match: re.Match[bytes]) -> bytes:
        body = match.group(1)
        simple = {b"\\": b"\\", b"n": b"\n", b"t": b"\t"}.get(body)
        return simple if simple is not None else bytes([int(body[1:], 16)])

    return _ESCAPE.sub(unescape, printable.encode("utf-8"))


class ChangeKind(StrEnum):
    """The kinds of change of a path."""

    CREATED = "created"
    OVERWRITTEN = "overwritten"
    DELETED = "deleted"
    METADATA = "mode"
    LINK = "link"
    DIRECTORY_REPLACED = "directory_replaced"
    SPECIAL = "special"


class Node(StrEnum):
    """The type of the object at a path. It is the one after the change, or for a deletion the one before it."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    FIFO = "fifo"
    SOCKET = "socket"
    DEVICE = "device"


class PathClass(StrEnum):
    """The classes of places in which a path may be, the most sensitive first."""

    ARTOO = "artoo"
    SECRET = "secret"
    PERSISTENCE = "persistence"
    PROJECT = "project"
    WORKSPACE = "workspace"
    HOME = "home"
    OUTSIDE = "outside"


_SENSITIVE = frozenset({PathClass.ARTOO, PathClass.SECRET, PathClass.PERSISTENCE})


class Trait(StrEnum):
    """A fact about the content of a change that may decide how the change is classified. It is read from both
    versions of the file, never guessed.

    `changed_meanwhile`: the user changed the file too, after the task first changed it."""

    TIMES_ONLY = "times_only"
    PRIVILEGED = "privileged"
    WIDENED = "widened"
    HARD_LINKED = "hard_linked"
    GIT_BOOKKEEPING = "git_bookkeeping"
    CHANGED_MEANWHILE = "changed_meanwhile"


class Change(BaseModel):
    """One path that a command would change.

    Sizes are in bytes (None if there is no file). `detail` is text about facts that have no field of their own,
    such as the target of a link, the old and the new mode, an owner, or extended attributes."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    kind: ChangeKind
    path: str = Field(description="absolute printable path")
    node: Node
    before: Node | None = Field(default=None, description="what was there; None: nothing")
    path_class: PathClass
    size_before: int | None = Field(default=None, ge=0)
    size_after: int | None = Field(default=None, ge=0)
    content_sha256: str | None = None
    detail: str = ""
    traits: tuple[Trait, ...] = ()

    @property
    def sensitive(self) -> bool:
        """Return whether writing to the path itself is dangerous, because it is a secret, a start-up file, or one
        of artoo's own files."""
        return self.path_class in _SENSITIVE

    def has(self, trait: Trait) -> bool:
        return trait in self.traits


# A new directory with more new files than this was filled by a program, and is shown as one entry.
CROWD = 50


def outermost(path: str, directories: Collection[str]) -> str:
    """Return the topmost of these directories that is the path or contains it. Return "" if there is none."""
    above = accumulate(path.split("/"), lambda above, name: f"{above}/{name}")
    return next((one for one in above if one in directories), "")


def digest_of(changes: Iterable[Change]) -> str:
    """Return the sha256 (hex) of exactly these changes. It covers all fields of all changes, with the hashes of
    contents, in path order.

    Two operations have the same digest only if they would write the same bytes, modes and names. An approval is
    bound to the digest.
    """
    # The changes are sorted, because two scans may list the same changes in a different order.
    listed = sorted(changes, key=attrgetter("path"))
    return hashlib.sha256(_listing().dump_json(listed)).hexdigest()


@cache
def _listing() -> TypeAdapter[list[Change]]:
    """Return the serializer of a whole list. Serializing each change alone would take twice as long."""
    return TypeAdapter(list[Change])


def _no(answer: bool) -> bool:
    return not answer


class Conflict(Contract):
    """A path that the user has changed since the task found it, so that the task's change is not applied.

    `diff` is the difference from the user's present version to the task's version, for texts that are small.
    `deleted`: true if the task deleted the path. Both fields are set only in reviews."""

    path: str
    reason: str
    diff: tuple[str, ...] = ()
    deleted: bool = Field(default=False, exclude_if=_no)


class Clash(Conflict):
    """A path that two subtasks changed in different ways. It occurs only in logs of earlier versions.

    The change of the subtask `stands` was kept, and that of `lost` was not. Both are empty in logs of version
    0.1."""

    stands: str = ""
    lost: str = ""


class ApplyReport(Contract):
    """The result of applying changes. Either all were applied, or, if there are conflicts, none."""

    applied: bool
    paths: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    transaction: str | None = Field(default=None, description="name of the undo record")


class UndoReport(Contract):
    """The files that an undo restored, and those that it did not restore because they were changed since.

    `separate`: files that were restored as independent files, because their other hard links now belong to another
    file."""

    task_id: str
    restored: tuple[str, ...] = ()
    refused: tuple[Conflict, ...] = ()
    separate: tuple[str, ...] = ()


class UndoableTask(Contract):
    """One task whose changes can still be undone. `until` is seconds since the epoch (UTC)."""

    task_id: str
    transactions: int = Field(ge=0)
    paths: int = Field(ge=0)
    bytes_kept: int = Field(ge=0)
    last_at: float
    until: float


class RecoveryReport(Contract):
    """The operations that a crash had interrupted and that the next start has finished or undone."""

    finished: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
