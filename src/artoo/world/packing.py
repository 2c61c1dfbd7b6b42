"""Packs a view's difference into a parcel that another machine can lay over its own files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from artoo.contracts.changes import Node, path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.world.difference import Difference
from artoo.world.files import parent_of
from artoo.world.git_layout import Part, part_of
from artoo.world.nodes import FILE_FLAGS, NodeState
from artoo.world.parcel import MOST_BYTES, MOST_PATHS, Item, Known, Manifest, StaysHere, Where
from artoo.world.scan import Effect, readable_layers
from artoo.world.view_place import ViewPlace

_CARRIED = (Node.FILE, Node.DIRECTORY, Node.LINK)
_CHUNK = 1 << 20
_MIB = 1 << 20


def pack(place: ViewPlace, difference: Difference, into: BinaryIO) -> Manifest:
    """Writes the parcel of a difference that was just read from `place`, whose lock is held. Blocking.

    Raises StaysHere when it cannot travel, SandboxError when it cannot be read, OSError (disk full).
    """
    if difference.conflicts:
        first = difference.conflicts[0]
        raise StaysHere(f"it conflicts with files of the machine that made it ({first.path}: {first.reason})")
    roots = place.record().roots
    packed = [(effect, _item(effect, roots)) for effect in difference.effects if not _local(effect)]
    if len(packed) > MOST_PATHS:
        raise StaysHere(f"it changes {len(packed):,} paths, and {MOST_PATHS:,} travel at most")
    packed.sort(key=lambda one: (one[1].where, path_bytes(one[1].path)))
    manifest = Manifest(items=tuple(item for _, item in packed))
    total = sum(item.now.size for item in manifest.contents if item.now is not None)
    if total > MOST_BYTES:
        raise StaysHere(f"it writes {total / _MIB:,.1f} MiB, and {MOST_BYTES / _MIB:,.0f} MiB travel at most")
    into.write(manifest.model_dump_json().encode() + b"\n")
    with readable_layers([effect for effect, _ in packed]):
        for effect, item in packed:
            if item.now is not None and item.now.node is Node.FILE:
                _copy(effect, item.now.size, into)
    return manifest


def _local(effect: Effect) -> bool:
    """Git's record of what happened in one clone, and its scratch files, are that clone's."""
    _, found, inner = os.fsdecode(effect.path).partition("/.git/")
    if not found:
        return False
    if inner == "logs" or inner.startswith("logs/"):
        return True
    state = effect.after or effect.before
    plain = state is not None and state.node is Node.FILE and not inner.startswith("modules/")
    return plain and part_of(inner) is Part.SCRATCH


def _item(effect: Effect, roots: Roots) -> Item:
    """Raises StaysHere for what cannot be said of another machine's files."""
    shown = printable_path(effect.path)
    where, relative = _placed(effect.path, roots, shown)
    for state in (effect.before, effect.after):
        if state is not None and state.node not in _CARRIED:
            raise StaysHere(f"{shown} is a {state.node.value}, which only its own machine has")
    if effect.after is not None:
        _require_plain(effect.before, effect.after, shown)
    was = None if effect.before is None else _known(effect.before, effect.before_digest)
    now = None if effect.after is None else _known(effect.after, effect.digest)
    return Item(where=where, path=relative, was=was, now=now)


def _placed(path: bytes, roots: Roots, shown: str) -> tuple[Where, str]:
    """The innermost of project and workspace that holds it."""
    places: list[tuple[Where, Path]] = [("project", roots.project), ("workspace", roots.workspace)]
    for where, root in sorted(places, key=lambda one: -len(one[1].parts)):
        above = os.fsencode(root) + b"/"
        if path.startswith(above):
            return where, printable_path(path.removeprefix(above))
    raise StaysHere(f"it changes {shown}, outside of project and workspace")


def _require_plain(before: NodeState | None, after: NodeState, shown: str) -> None:
    """Raises StaysHere for owners and attributes that the task gave a path."""
    owners = {os.geteuid()} if before is None else {os.geteuid(), before.uid}
    if after.uid not in owners:
        raise StaysHere(f"{shown} gets another owner")
    if after.xattrs != (() if before is None else before.xattrs):
        raise StaysHere(f"{shown} gets other attributes")


def _known(state: NodeState, sha256: str | None) -> Known:
    return Known(
        node=state.node,
        mode=0 if state.node is Node.LINK else state.mode,
        size=state.size,
        sha256=sha256 if state.node is Node.FILE else None,
        target=printable_path(state.target) if state.target else "",
        mtime_ns=0 if state.is_directory else state.mtime_ns,
    )


def _copy(effect: Effect, size: int, into: BinaryIO) -> None:
    """The content that the view's layer holds; exactly `size` bytes."""
    root = printable_path(os.fsencode(effect.layer.upper))
    relative = printable_path(effect.relative)
    try:
        written = 0
        with parent_of(root, relative) as (directory, name):
            for piece in _pieces(directory, name):
                into.write(piece)
                written += len(piece)
    except PermissionError as error:
        raise SandboxError(f"{printable_path(effect.path)} cannot be read: {error.strerror}") from error
    if written != size:
        raise SandboxError(f"{printable_path(effect.path)} changed while it was packed; try again")


def _pieces(directory: int, name: str) -> Iterator[bytes]:
    descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
    try:
        while piece := os.read(descriptor, _CHUNK):
            yield piece
    finally:
        os.close(descriptor)
