"""What the copies of a workspace held when they were made, and from which versions of the user's files.

One JSON array a line: covered directory, printable path, source stamp, copy stamp. A later line replaces an earlier
one of the same path; null for both stamps removes it. A last line without an end was cut by a crash and is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from artoo.contracts.changes import path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.workspace.fs.stat import NodeState

Stamp = tuple[int, ...]
"""What tells whether a thing is as it was. Any write, also of a mode, changes the time of change."""


def stamp_of(state: NodeState) -> Stamp:
    """Return the stamp of a state. A directory's times change with its entries, so they do not count."""
    if state.is_directory:
        return (state.mode, state.uid, state.gid)
    return (state.mode, state.uid, state.gid, state.device, state.inode, state.size, state.mtime_ns, state.ctime_ns)


class Entry(NamedTuple):
    """One copied path: the version of the user's that was copied, and the copy as it was made."""

    source: Stamp
    copy: Stamp


class Manifest:
    """The manifest of one workspace, held in memory and appended to its file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._entries: dict[tuple[int, bytes], Entry] = {}
        self._names: dict[tuple[int, bytes], set[str]] = {}
        self._new: list[bytes] = []

    @classmethod
    def read(cls, file: Path) -> Manifest:
        """Read the file; a missing one is empty. Raises SandboxError when it is damaged."""
        manifest = cls(file)
        try:
            lines = file.read_bytes().split(b"\n")[:-1]
            for line in lines:
                number, path, source, copy = json.loads(line)
                if source is None:
                    manifest._drop(number, path_bytes(path))
                else:
                    manifest._put(number, path_bytes(path), Entry(tuple(source), tuple(copy)))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError) as error:
            raise SandboxError(f"the manifest {file} cannot be read ({error}); keep it and report this") from error
        return manifest

    def get(self, number: int, relative: bytes) -> Entry | None:
        """Return the entry of a path; None when it was not copied."""
        return self._entries.get((number, relative))

    def is_changed(self, number: int, relative: bytes, state: NodeState) -> bool:
        """True if what is in the copy now is not what was copied."""
        entry = self._entries.get((number, relative))
        return entry is None or entry.copy != stamp_of(state)

    def names_in(self, number: int, relative: bytes) -> frozenset[str]:
        """Return the names that were copied into a directory."""
        return frozenset(self._names.get((number, relative), ()))

    def below(self, number: int, relative: bytes) -> Iterator[bytes]:
        """Yield the copied paths below one, deepest first."""
        for name in sorted(self._names.get((number, relative), ())):
            inner = relative + b"/" + os.fsencode(name) if relative else os.fsencode(name)
            yield from self.below(number, inner)
            yield inner

    def put(self, number: int, relative: bytes, entry: Entry) -> None:
        """Remember a copied path; `save` writes it."""
        self._put(number, relative, entry)
        self._note(number, relative, entry)

    def drop(self, number: int, relative: bytes) -> None:
        """Forget a path; `save` writes it."""
        self._drop(number, relative)
        self._note(number, relative, None)

    def items(self) -> Iterator[tuple[int, bytes, Entry]]:
        """Yield covered directory, path and entry of everything that was copied."""
        return ((number, relative, entry) for (number, relative), entry in self._entries.items())

    def save(self) -> None:
        """Append what is new. Raises OSError (full disk)."""
        if not self._new:
            return
        with self._file.open("ab") as file:
            file.write(b"".join(self._new))
        self._new.clear()

    def _note(self, number: int, relative: bytes, entry: Entry | None) -> None:
        told = (number, printable_path(relative), *(entry or (None, None)))
        self._new.append(json.dumps(told, separators=(",", ":")).encode() + b"\n")

    def _put(self, number: int, relative: bytes, entry: Entry) -> None:
        self._entries[number, relative] = entry
        directory, _, name = relative.rpartition(b"/")
        if relative:
            self._names.setdefault((number, directory), set()).add(os.fsdecode(name))

    def _drop(self, number: int, relative: bytes) -> None:
        self._entries.pop((number, relative), None)
        directory, _, name = relative.rpartition(b"/")
        self._names.get((number, directory), set[str]()).discard(os.fsdecode(name))
