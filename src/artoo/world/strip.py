"""Takes out of a fork's layer what it lost to earlier forks, so that folding it leaves their versions alone.

Besides lost changes these are things that the fork copied up and did not change: their versions are as old as it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from artoo.world.below import Below, below, is_opaque, is_whiteout
from artoo.world.clash import Winners, by_path
from artoo.world.files import set_metadata
from artoo.world.journal import StateRecord
from artoo.world.nodes import DIRECTORY_FLAGS, NodeState, read_state
from artoo.world.opaque import drop_opaque, spell_out
from artoo.world.opened import opened_up
from artoo.world.remove import remove_tree
from artoo.world.scan import Effect
from artoo.world.stage import Layer


def strip(layer: Layer, winners: Winners, effects: Sequence[Effect]) -> None:
    """Leaves in `layer` (not folded yet, over what it was forked from) only what stands. Raises OSError."""
    above = os.open(layer.upper.parent, DIRECTORY_FLAGS)
    try:
        with below(layer.root, layer.below) as lower, opened_up(above, layer.upper.name, 0o700) as inside:
            _Stripper(winners, by_path(effects), layer.notes).directory(inside, lower, os.fsencode(layer.root))
    finally:
        os.close(above)


class _Stripper:
    def __init__(self, winners: Winners, effects: dict[bytes, Effect], notes: Path) -> None:
        self._notes = notes
        self._winners = winners
        self._effects = effects

    def directory(self, inside: int, lower: Below | None, path: bytes, *, hidden: bool = False) -> None:
        """`hidden`: a directory above is opaque, so that nothing of `lower` is seen yet."""
        for name in os.listdir(inside):
            self._entry(inside, lower, name, path + b"/" + os.fsencode(name), hidden)

    def _entry(self, inside: int, lower: Below | None, name: str, path: bytes, hidden: bool) -> None:
        state = read_state(inside, name)
        assert state is not None
        if self._lost(path, state, is_whiteout(inside, name, state)):
            _remove(inside, name, state)
        elif state.is_directory:
            self._subdirectory(inside, lower, name, path, state, hidden)

    def _lost(self, path: bytes, state: NodeState, whiteout: bool) -> bool:
        effect = self._effects.get(path)
        standing = self._winners.effects.get(path)
        if state.is_directory:
            return self._winners.closes(path)
        if effect is not None:
            return self._winners.rival(effect) is not None
        return standing is not None or whiteout

    def _subdirectory(
        self, inside: int, lower: Below | None, name: str, path: bytes, state: NodeState, hidden: bool
    ) -> None:
        with ExitStack() as opened:
            found = lower.find(name) if lower is not None else None
            inner = None
            if lower is not None and found is not None and found.state.is_directory:
                inner = opened.enter_context(lower.enter(name))
            here = opened.enter_context(opened_up(inside, name, state.mode, self._notes))
            opaque = is_opaque(inside, name)
            self.directory(here, inner, path, hidden=hidden or opaque)
            if inner is not None and (hidden or opaque):
                spell_out(here, inner)
            if inner is not None and opaque:  # last: until then a crash leaves all of it hidden
                drop_opaque(inside, name)
        standing = self._winners.effects.get(path)
        effect = self._effects.get(path)
        if standing is not None and (effect is None or self._winners.rival(effect) is not None):
            record = StateRecord.of(standing[1].after)
            assert record is not None
            set_metadata(inside, name, record, times=False)


def _remove(inside: int, name: str, state: NodeState) -> None:
    if state.is_directory:
        remove_tree(Path(f"/proc/self/fd/{inside}") / name)
    else:
        os.unlink(name, dir_fd=inside)
