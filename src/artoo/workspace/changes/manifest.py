"""What the copies of a workspace held when they were made, and from which versions of the user's files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_whole
from artoo.workspace.fs.names import printable, text_of
from artoo.workspace.fs.stat import NodeState

Key = tuple[int, str]
"""The number of a covered directory, and a path below it; empty for the covered directory itself."""

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


@dataclass(slots=True)
class Manifest:
    """The entries of one workspace: `manifest.json`, a list of [number, printable path, source, copy]."""

    file: Path
    entries: dict[Key, Entry] = field(default_factory=dict[Key, Entry])

    @classmethod
    def read(cls, file: Path) -> Manifest:
        """Read the file; a missing one is empty. Raises SandboxError when it is damaged."""
        manifest = cls(file)
        try:
            for number, path, source, copy in json.loads(file.read_bytes()):
                key = (number, text_of(path))
                manifest.entries[key] = Entry(tuple(source), tuple(copy))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError) as error:
            raise SandboxError(f"the manifest {file} cannot be read ({error}); keep it and report this") from error
        return manifest

    def is_changed(self, key: Key, state: NodeState) -> bool:
        """True if what is in the copy now is not what was copied."""
        entry = self.entries.get(key)
        return entry is None or entry.copy != stamp_of(state)

    def save(self) -> None:
        """Write the file. Raises OSError (full disk)."""
        listed = [(number, printable(path), *entry) for (number, path), entry in self.entries.items()]
        write_whole(self.file, json.dumps(listed, separators=(",", ":")).encode(), sync=False)
