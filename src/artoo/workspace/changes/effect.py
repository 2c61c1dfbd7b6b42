"""The record of one changed path, with the user's state before and the task's state after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from artoo.contracts.settling import ChangeClass, Rewritten
from artoo.workspace.fs.stat import NodeState


class Effect(NamedTuple):
    """The change of one path from `before` (the user's present version) to `after` (the task's version). Each is
    None if the path does not exist in that version.

    `root`: the covered real directory. `path`: the absolute path. `shown`: its printable form. `source`: the
    absolute path of the new version, in the upper directory or in the copy. It is empty for a deletion. `in_place`:
    true if only mode, owner, attributes or times change. `digest` and `before_digest`: sha256 (hex) of a file's
    contents, if they were read.
    """

    root: bytes
    path: bytes
    shown: str
    before: NodeState | None
    after: NodeState | None
    source: bytes = b""
    in_place: bool = False
    digest: str | None = None
    before_digest: str | None = None

    @property
    def relative(self) -> bytes:
        """The path below the root; empty for the root itself."""
        return self.path[len(self.root) :].lstrip(b"/")

    @property
    def is_directory(self) -> bool:
        """True if the path is a directory in each version in which it exists."""
        return all(state is None or state.is_directory for state in (self.before, self.after))

    @property
    def makes_directory(self) -> bool:
        """True if the path is a directory in the task's version, but not in the user's."""
        return _is_directory(self.after) and not _is_directory(self.before)

    @property
    def removes_directory(self) -> bool:
        """True if the path is a directory in the user's version, but not in the task's."""
        return _is_directory(self.before) and not _is_directory(self.after)


def _is_directory(state: NodeState | None) -> bool:
    return state is not None and state.is_directory


@dataclass(frozen=True, slots=True)
class Verdict:
    """The class of a change, and the reason that is shown to the user. `rewrites`: the commits and other git data
    that would be lost in the path's repository."""

    change_class: ChangeClass
    reason: str = ""
    rewrites: Rewritten | None = None
