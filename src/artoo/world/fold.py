"""Folds what a command did into the layer below it: entry by entry, by rename, with the meaning of an overlay.

    folded layer \\ layer below    nothing, or a whiteout       a directory         anything else
    whiteout                      kept if more lies below it   it goes             it goes
    directory                     moved (opaque over a         merged; an opaque   replaces it, opaque
                                  whiteout)                    one replaces it
    anything else                 moved                        replaces it         replaces it

Each part may be repeated: what was moved is gone from the folded layer, and what is left is folded as before. So a
fold that a crash cut is finished by folding again. At its end the folded layer holds nothing but directories that
were merged: to remove one takes longer than to fold a file, and is left to whoever removes the layer.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from artoo.world.below import Below, below, is_opaque, is_whiteout
from artoo.world.carry import hide_below
from artoo.world.files import set_metadata
from artoo.world.journal import StateRecord
from artoo.world.nodes import DIRECTORY_FLAGS, NodeState, read_state
from artoo.world.opened import NOTES, WORK, opened_up
from artoo.world.remove import remove_tree
from artoo.world.stage import Layer
from artoo.world.unheld import unheld, with_unheld


def fold(upper: Path, into: Layer) -> None:
    """Empties `upper`, but for directories, into the layer `into`, on the same file system.

    Raises OSError; then it can be repeated.
    """
    above = os.open(upper.parent, DIRECTORY_FLAGS)
    under = os.open(into.upper.parent, DIRECTORY_FLAGS)
    try:
        with below(into.root, into.below) as lower:
            folding = _Folding(upper.with_name(NOTES), into.notes)
            folding.merge(above, upper.name, under, into.upper.name, lower, unheld(upper))
    finally:
        os.close(under)
        os.close(above)


@dataclass(frozen=True, slots=True)
class _Folding:
    """`notes` of the layer that is folded, and of the one below (`opened`)."""

    notes: Path
    notes_below: Path

    def merge(
        self,
        above: int,
        name: str,
        under: int,
        as_name: str,
        lower: Below | None,
        kept: frozenset[str] = frozenset(),
    ) -> None:
        """One directory into another; then it looks like the upper one, but for attributes that are `kept`."""
        state, there = read_state(above, name), read_state(under, as_name)
        assert state is not None and there is not None
        with (
            opened_up(above, name, state.mode, self.notes) as source,
            opened_up(under, as_name, there.mode, self.notes_below) as target,
        ):
            for child in sorted(os.listdir(source), key=os.fsencode):
                self._entry(source, target, child, lower)
        record = StateRecord.of(with_unheld(state, there, kept))
        assert record is not None
        set_metadata(under, as_name, record, times=True)

    def _entry(self, source: int, target: int, name: str, lower: Below | None) -> None:
        state, there = read_state(source, name), read_state(target, name)
        assert state is not None
        if is_whiteout(source, name, state):
            _deleted(source, target, name, there, lower)
        elif state.is_directory:
            self._directory(source, target, name, state, there, lower)
        else:
            _clear_directory(target, name, there)
            os.replace(name, name, src_dir_fd=source, dst_dir_fd=target)

    def _directory(
        self, source: int, target: int, name: str, state: NodeState, there: NodeState | None, lower: Below | None
    ) -> None:
        if there is not None and there.is_directory and not is_opaque(source, name):
            with _entered(target, name, lower) as inner:
                self.merge(source, name, target, name, inner)
            return
        if there is not None and there.is_directory:
            _clear_directory(target, name, there)
        elif there is not None:
            with self._open(source, name, state.mode):  # an attribute is set only by who may write
                hide_below(source, name)  # before what stops the stack goes: a crash must uncover nothing
            os.unlink(name, dir_fd=target)
        with self._open(source, name, state.mode):  # nor does it change its parent for others
            os.replace(name, name, src_dir_fd=source, dst_dir_fd=target)

    def _open(self, source: int, name: str, mode: int) -> AbstractContextManager[object]:
        """Most directories are open already, and need no descriptor."""
        locked = mode & WORK != WORK and os.geteuid() != 0
        return opened_up(source, name, mode, self.notes) if locked else nullcontext()


def _deleted(source: int, target: int, name: str, there: NodeState | None, lower: Below | None) -> None:
    _clear_directory(target, name, there)
    if lower is not None and lower.find(name) is not None:
        os.replace(name, name, src_dir_fd=source, dst_dir_fd=target)
    elif there is not None and not there.is_directory:
        os.unlink(name, dir_fd=target)
    with suppress(FileNotFoundError):  # moved; or not, when both were names of one whiteout
        os.unlink(name, dir_fd=source)


@contextmanager
def _entered(target: int, name: str, lower: Below | None) -> Generator[Below | None]:
    """What is below a directory of the layer: nothing, when it is opaque or nothing of its name is below."""
    if lower is None or is_opaque(target, name):
        yield None
        return
    found = lower.find(name)
    if found is None or not found.state.is_directory:
        yield None
        return
    with lower.enter(name) as inner:
        yield inner


def _clear_directory(target: int, name: str, there: NodeState | None) -> None:
    if there is not None and there.is_directory:
        remove_tree(Path(f"/proc/self/fd/{target}") / name)
