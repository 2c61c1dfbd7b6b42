"""Carries a layer from memory to disk as it is: whiteouts, opaque directories, hard links, attributes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from artoo.world.below import is_opaque, is_whiteout
from artoo.world.files import copy_node, set_metadata
from artoo.world.journal import StateRecord
from artoo.world.nodes import DIRECTORY_FLAGS, NodeState, at, read_state
from artoo.world.opened import READ, opened_up
from artoo.world.unheld import note_unheld, unheld

OPAQUE = "user.overlay.opaque"
"""The attribute under which we note that a directory hides what is below it; `userxattr` mounts read it."""


def carry(upper: Path, target: Path) -> None:
    """Makes `target`, which must not be there, a copy of a layer's directory. Raises OSError (disk full)."""
    _Carrier().run(upper, target)


class _Carrier:
    def __init__(self) -> None:
        self._twins: dict[tuple[int, int], Path] = {}

    def run(self, upper: Path, target: Path) -> None:
        source = os.open(upper.parent, DIRECTORY_FLAGS)
        try:
            state = read_state(source, upper.name)
            assert state is not None
            self._directory(source, upper.name, state, target)
            note_unheld(target, unheld(upper))
        finally:
            os.close(source)

    def _directory(self, source: int, name: str, state: NodeState, target: Path) -> None:
        target.mkdir(mode=0o700)
        if is_opaque(source, name):
            os.setxattr(target, OPAQUE, b"y")
        with opened_up(source, name, state.mode, rights=READ) as inside:
            for child in os.listdir(inside):
                self._entry(inside, child, target / child)
        self._dress(target, state)

    def _entry(self, source: int, name: str, target: Path) -> None:
        state = read_state(source, name)
        if state is None:
            return
        if is_whiteout(source, name, state):
            os.mknod(target, stat.S_IFCHR, 0)
        elif state.is_directory:
            self._directory(source, name, state, target)
        else:
            self._leaf(source, name, state, target)

    def _leaf(self, source: int, name: str, state: NodeState, target: Path) -> None:
        twin = self._twins.setdefault((state.device, state.inode), target)
        if twin is not target:
            os.link(twin, target, follow_symlinks=False)
            return
        record = StateRecord.of(state)
        assert record is not None
        copy_node(source, name, record, target, durable=False)

    def _dress(self, target: Path, state: NodeState) -> None:
        record = StateRecord.of(state)
        assert record is not None
        parent = os.open(target.parent, DIRECTORY_FLAGS)
        try:
            set_metadata(parent, target.name, record, times=True)
        finally:
            os.close(parent)


def hide_below(directory: int, name: str) -> None:
    """Makes a directory of a layer opaque."""
    os.setxattr(at(directory, name), OPAQUE, b"y", follow_symlinks=False)
