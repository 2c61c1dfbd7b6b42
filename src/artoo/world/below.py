"""What a layer lies over: a real directory seen through frozen layers, as the kernel would show it.

In a layer a character device 0:0 means *deleted*, the attribute `overlay.opaque` means *this directory hides what
is below it*. A directory of this module is the list of those that are merged into it, topmost first.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from artoo.contracts.changes import Node
from artoo.world.nodes import (
    DIRECTORY_FLAGS,
    NodeState,
    glance,
    open_directory,
    overlay_xattr,
    read_state,
    with_attributes,
)
from artoo.world.opened import NOTES, READ, opened_up


class Found(NamedTuple):
    """Something below: the open directory that holds it, and whether that is the real one."""

    directory: int
    state: NodeState
    real: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """`notes`: those of the layer (`opened`); None when it is real."""

    descriptor: int
    notes: Path | None

    @property
    def real(self) -> bool:
        return self.notes is None


@dataclass(frozen=True, slots=True)
class Below:
    """One merged directory. Valid only inside the `with` that made it."""

    parts: tuple[_Part, ...]

    @property
    def state(self) -> NodeState:
        """The directory's own state: that of the topmost part."""
        state = read_state(self.parts[0].descriptor, ".")
        assert state is not None
        return state

    def find(self, name: str) -> Found | None:
        """What stands at `name`; None when nothing does, or a layer deleted it."""
        found = self.glimpse(name)
        if found is None:
            return None
        return Found(found.directory, with_attributes(found.directory, name, found.state), found.real)

    def glimpse(self, name: str) -> Found | None:
        """`find` without the attributes."""
        for part in self.parts:
            state = glance(part.descriptor, name)
            if state is not None:
                hidden = not part.real and is_whiteout(part.descriptor, name, state)
                return None if hidden else Found(part.descriptor, state, part.real)
        return None

    def names(self) -> list[str]:
        """What is in the directory, in byte order."""
        seen: dict[str, bool] = {}
        for part in self.parts:
            for name in os.listdir(part.descriptor):
                if name not in seen:
                    seen[name] = part.real or not is_whiteout(part.descriptor, name)
        return sorted((name for name, there in seen.items() if there), key=os.fsencode)

    @contextmanager
    def enter(self, name: str) -> Generator[Below]:
        """A directory in this one. Raises OSError when it cannot be read, or is none."""
        with ExitStack() as opened:
            yield Below(tuple(self._parts_of(name, opened)))

    def _parts_of(self, name: str, opened: ExitStack) -> Iterator[_Part]:
        first = True
        for part in self.parts:
            state = read_state(part.descriptor, name)
            if state is None:
                continue
            if not state.is_directory:
                if first:
                    raise NotADirectoryError(name)
                return  # what is no directory ends the stack
            first = False
            if part.real:
                descriptor = open_directory(part.descriptor, name)
                opened.callback(os.close, descriptor)
            else:
                descriptor = opened.enter_context(opened_up(part.descriptor, name, state.mode, part.notes, READ))
            yield _Part(descriptor, part.notes)
            if not part.real and is_opaque(part.descriptor, name):
                return
        if first:
            raise FileNotFoundError(name)


@contextmanager
def below(root: Path, uppers: tuple[Path, ...]) -> Generator[Below]:
    """The root directory as it stands below a layer. Raises OSError."""
    with ExitStack() as opened:
        parts: list[_Part] = []
        for place, notes in (*((upper, upper.with_name(NOTES)) for upper in uppers), (root, None)):
            descriptor = os.open(place, DIRECTORY_FLAGS)
            opened.callback(os.close, descriptor)
            parts.append(_Part(descriptor, notes))
        yield Below(tuple(parts))


def is_opaque(directory: int, name: str) -> bool:
    """Whether a directory of a layer hides what is below it."""
    return overlay_xattr(directory, name, "opaque") == b"y"


def is_whiteout(directory: int, name: str, state: NodeState | None = None) -> bool:
    """Whether an entry of a layer says that this name is deleted."""
    if state is not None and (state.node not in (Node.DEVICE, Node.FILE) or state.size):
        return False
    try:
        seen = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if stat.S_ISCHR(seen.st_mode):
        return seen.st_rdev == 0
    if stat.S_ISREG(seen.st_mode) and seen.st_size == 0:
        return overlay_xattr(directory, name, "whiteout") is not None
    return False
