"""Paths of a workspace that is a plain copy: commands name the user's directories and get the copies.

A command's arguments, variables and working directory are translated when it starts, its output on the way back.
`/tmp` is the workspace's own scratch directory, as it is with an overlay.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from artoo.ports.workspace import Command
from artoo.sandbox.output import Output, StreamName
from artoo.sandbox.protocols import Layout

_SHARED_TEMPORARY = ("/tmp", "/var/tmp")
_NO_START = rb"(?:(?<![\w.~/-])|(?<=[\s:=,'\"(]-[A-Za-z])|(?<=^-[A-Za-z])|(?<=://))"
"""What may stand before a path in a text: nothing that makes it part of a longer path, but `-I/path` is one."""
_NO_END = rb"(?![\w.@%+~-])"


@dataclass(frozen=True, slots=True)
class PathMap:
    """The real directories and their copies, outermost last; `scratch` stands for /tmp and /var/tmp."""

    copies: tuple[tuple[str, str], ...]
    scratch: str

    @classmethod
    def of(cls, layout: Layout) -> PathMap:
        copies = sorted(((str(real), str(copy)) for real, copy in layout.copies), key=lambda pair: -len(pair[0]))
        return cls(tuple(copies), str(layout.scratch))

    def inside(self, path: Path) -> Path:
        """Return where commands find what the user calls `path`."""
        return Path(self._moved(str(path)))

    def translate(self, text: str) -> str:
        """Return a text of a command, such as a script, with the copies' paths in place of the real ones."""
        names = (*(real for real, _ in self.copies), *_SHARED_TEMPORARY)
        if not any(name in text for name in names):
            return text
        tree = b"|".join(re.escape(os.fsencode(name)) for name in names)
        path = re.compile(_NO_START + b"(?:" + tree + b")" + _NO_END + rb"(?:/[^\s'\"`;&|<>()$*?\[\]{}:,]*)?")
        moved = path.sub(lambda found: os.fsencode(self._moved(os.fsdecode(found[0]))), os.fsencode(text))
        return os.fsdecode(moved)

    def _moved(self, path: str) -> str:
        for real, copy in self.copies:
            if path == real or path.startswith(real + "/"):
                return copy + path[len(real) :]
        for shared in _SHARED_TEMPORARY:
            if path == shared or path.startswith(shared + "/"):
                own = self.scratch + path[len(shared) :]
                # What lies in the user's /tmp and has no namesake here is meant itself: a log, a program.
                name = path[len(shared) :].lstrip("/").partition("/")[0]
                is_users = bool(name) and os.path.lexists(f"{shared}/{name}")
                return path if is_users and not os.path.lexists(f"{self.scratch}/{name}") else own
        return path


class TranslatedOutput(Output):
    """The output of a command that works in copies, with the user's paths put back.

    A path that arrives in two pieces stays the copy's, which file tools take for the same file.
    """

    def __init__(self, path: Path, command: Command, paths: PathMap) -> None:
        super().__init__(path, command.limits, command.on_output)
        pairs = (*paths.copies, (_SHARED_TEMPORARY[0], paths.scratch))
        self._shown = {os.fsencode(place): os.fsencode(real) for real, place in pairs}
        self._places = re.compile(b"|".join(map(re.escape, self._shown)))

    def add(self, data: bytes, stream: StreamName = "stdout") -> None:
        """Append what the command printed on a stream."""
        super().add(self._places.sub(lambda found: self._shown[found[0]], data), stream)
