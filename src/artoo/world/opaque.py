"""Opaque directories of a layer, spelled out: they name what they hide, instead of hiding all that is below them.

What is below a layer gets more when changes are applied or joined, and what came of the layer itself must be seen.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from pathlib import Path

from artoo.world.below import Below, below, is_opaque
from artoo.world.carry import OPAQUE
from artoo.world.nodes import DIRECTORY_FLAGS, at, read_state
from artoo.world.opened import opened_up
from artoo.world.stage import Layer


def spell_out(here: int, lower: Below, staying: Collection[str] = ()) -> None:
    """Says of each name below that it is gone, but for those that stay. Raises OSError."""
    for name in lower.names():
        if name not in staying and read_state(here, name) is None:
            os.mknod(name, stat.S_IFCHR, 0, dir_fd=here)


def drop_opaque(directory: int, name: str) -> None:
    """The directory hides nothing from here on but what it names. Raises OSError."""
    os.removexattr(at(directory, name), OPAQUE, follow_symlinks=False)


def uncover(layer: Layer, paths: Iterable[bytes]) -> None:
    """Spells out each opaque directory of the layer that is at or above the `paths`, which are not hidden any more.

    They are relative to its root. May be repeated. Raises OSError.
    """
    staying: dict[bytes, set[str]] = {}
    for path in paths:
        parent, _, name = path.rpartition(b"/")
        staying.setdefault(parent, set()).add(os.fsdecode(name))
    above = os.open(layer.upper.parent, DIRECTORY_FLAGS)
    try:
        mode = stat.S_IMODE(os.lstat(layer.upper).st_mode)
        opening = opened_up(above, layer.upper.name, mode, layer.notes)
        with below(layer.root, layer.below) as lower, opening as inside:
            _Uncovering(staying, layer.notes).directory(inside, lower, b"")
    finally:
        os.close(above)


class _Uncovering:
    def __init__(self, staying: dict[bytes, set[str]], notes: Path) -> None:
        self._notes = notes
        self._staying = staying
        self._ways = {path[:end] for path in staying for end in range(len(path)) if path[end : end + 1] == b"/"}
        self._ways.update(staying)

    def directory(self, inside: int, lower: Below, relative: bytes, *, hidden: bool = False) -> None:
        """`hidden`: a directory above is opaque, so that nothing of `lower` is seen yet."""
        for name in os.listdir(inside):
            path = relative + b"/" + os.fsencode(name) if relative else os.fsencode(name)
            if hidden or path in self._ways:
                self._entry(inside, lower, name, path, hidden)

    def _entry(self, inside: int, lower: Below, name: str, path: bytes, hidden: bool) -> None:
        state, found = read_state(inside, name), lower.find(name)
        if state is None or not state.is_directory or found is None or not found.state.is_directory:
            return
        with ExitStack() as opened:
            here = opened.enter_context(opened_up(inside, name, state.mode, self._notes))
            opaque = is_opaque(inside, name)
            try:
                inner = opened.enter_context(lower.enter(name))
            except PermissionError:  # what was applied closed it to its owner
                if hidden or opaque or self._holds_opaque(here):
                    raise
                return
            self.directory(here, inner, path, hidden=hidden or opaque)
            if hidden or opaque:
                spell_out(here, inner, self._staying.get(path, ()))
            if opaque:  # last: until then a crash leaves all of it hidden
                drop_opaque(inside, name)

    def _holds_opaque(self, inside: int) -> bool:
        for name in os.listdir(inside):
            state = read_state(inside, name)
            if state is None or not state.is_directory:
                continue
            if is_opaque(inside, name):
                return True
            with opened_up(inside, name, state.mode, self._notes) as here:
                if self._holds_opaque(here):
                    return True
        return False
