"""After an act: nothing that is the person's own file is in the layers of the view that it came from.

A layer lends its files, or links them into place. Whoever writes to such a file in the view would write to theirs.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress

from artoo.contracts.changes import printable_path
from artoo.world.files import copy_node, parent_of
from artoo.world.journal import StateRecord, record_bytes
from artoo.world.move import now_at
from artoo.world.nodes import NodeState
from artoo.world.opened import WORK, with_rights
from artoo.world.stage import Layer

_APART = "apart"


def take_out(layer: Layer, paths: Sequence[str]) -> None:
    """Removes what was applied and is there. May be repeated. Raises OSError."""
    top, shown, inside = _in_layer(layer, paths)
    with _workable(layer, inside):
        for relative in inside:
            held = now_at(top, relative)
            if held is None or held.is_directory:  # where the person may have a file by now
                continue
            with suppress(PermissionError):  # the act closed a directory above it to its owner; so it is there
                now = now_at(shown, relative)
                if now is None or now.is_directory:
                    continue
            with suppress(FileNotFoundError, NotADirectoryError), parent_of(top, relative) as (directory, name):
                os.unlink(name, dir_fd=directory)


def part_from(layer: Layer, paths: Sequence[str]) -> None:
    """Of an act that was given up: what somebody changed by the name that the act had given it is theirs, and the
    view gets a copy. May be repeated. Raises OSError."""
    top, shown, inside = _in_layer(layer, paths)
    apart = layer.upper.with_name(_APART)  # what a full disk or a crash cuts is nothing that the task made
    try:
        with _workable(layer, inside):
            for relative in inside:
                held = now_at(top, relative)
                if held is None or not _is_theirs(held, shown, relative):
                    continue
                state = StateRecord.of(held)
                assert state is not None
                with parent_of(top, relative) as (directory, name):
                    copy_node(directory, name, state, apart, notes=layer.notes)
                    os.rename(apart, name, dst_dir_fd=directory)
    finally:
        apart.unlink(missing_ok=True)


def _is_theirs(held: NodeState, shown: str, relative: str) -> bool:
    """Whether what a layer holds is what is at the path too; where its owner may not look, if it may be."""
    try:
        now = now_at(shown, relative)
    except PermissionError:
        return not held.is_directory and held.links > 1
    return now is not None and (held.inode, held.device) == (now.inode, now.device)


def _in_layer(layer: Layer, paths: Iterable[str]) -> tuple[str, str, list[str]]:
    """Its upper directory and its root, printable, and those of the paths that are in it, below them."""
    top, shown = printable_path(os.fsencode(layer.upper)), printable_path(os.fsencode(layer.root))
    return top, shown, [path.removeprefix(f"{shown}/") for path in paths if path.startswith(f"{shown}/")]


@contextmanager
def _workable(layer: Layer, inside: Iterable[str]) -> Generator[None]:
    """The directories of a layer in which these paths are, its uppermost too, whatever modes the task gave them."""
    home = printable_path(os.fsencode(layer.upper.parent))
    paths = [f"{layer.upper.name}/{path}" for path in inside]
    with ExitStack() as opened:
        above = {path[:end] for path in paths for end, sign in enumerate(path) if sign == "/"}
        for relative in sorted(above) if os.geteuid() != 0 else ():  # outermost first
            now = now_at(home, relative)
            if now is not None and now.is_directory and now.mode & WORK != WORK:
                place = record_bytes(f"{home}/{relative}")
                opened.enter_context(with_rights(place, now.mode, WORK, layer.notes))
        yield
