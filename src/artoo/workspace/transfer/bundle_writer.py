"""Write a workspace's change set into a bundle that another machine can lay over its own files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from artoo.contracts.changes import Node, path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import MIB, Roots
from artoo.workspace.changes.change_set import ChangeSet, read_change_set
from artoo.workspace.changes.effect import Effect
from artoo.workspace.fs.stat import FILE_FLAGS, NodeState
from artoo.workspace.git.layout import Part, part_of
from artoo.workspace.settlement.service import Settlement
from artoo.workspace.transfer.bundle import MOST_BYTES, MOST_PATHS, Item, Known, Manifest, StaysHere, Where

_CARRIED = (Node.FILE, Node.DIRECTORY, Node.LINK)
_CHUNK = 1 << 20


def pack(settlement: Settlement, reviewed: ChangeSet, into: BinaryIO) -> Manifest:
    """Write the bundle of the change set that was just reviewed. Blocking.

    Git's own files travel as files, and the other machine's git reads them when it settles. Raises StaysHere when
    the change set cannot travel, SandboxError when it cannot be read, OSError (full disk).
    """
    if reviewed.all_conflicts:
        first = reviewed.all_conflicts[0]
        raise StaysHere(f"it conflicts with files of the machine that made it ({first.path}: {first.reason})")
    roots = settlement.directory.record().roots
    raw = read_change_set(settlement.directory, settlement.artoo_home)
    packed = [(effect, _item(effect, roots)) for effect in raw.effects if not _is_local(effect)]
    if len(packed) > MOST_PATHS:
        raise StaysHere(f"it changes {len(packed):,} paths, and at most {MOST_PATHS:,} travel")
    packed.sort(key=lambda one: (one[1].where, path_bytes(one[1].path)))
    manifest = Manifest(items=tuple(item for _, item in packed))
    total = sum(item.now.size for item in manifest.contents if item.now is not None)
    if total > MOST_BYTES:
        raise StaysHere(f"it writes {total / MIB:,.1f} MiB, and at most {MOST_BYTES / MIB:,.0f} MiB travel")
    into.write(manifest.model_dump_json().encode() + b"\n")
    for effect, item in packed:
        if item.now is not None and item.now.node is Node.FILE:
            _copy(effect, item.now.size, into)
    return manifest


def _is_local(effect: Effect) -> bool:
    """True for git's reflogs and scratch files, which belong to one clone."""
    _, found, inner = os.fsdecode(effect.path).partition("/.git/")
    if not found:
        return False
    if inner == "logs" or inner.startswith("logs/"):
        return True
    state = effect.after or effect.before
    plain = state is not None and state.node is Node.FILE and not inner.startswith("modules/")
    return plain and part_of(inner) is Part.SCRATCH


def _item(effect: Effect, roots: Roots) -> Item:
    """Raises StaysHere for what cannot be described for another machine's files."""
    where, relative = _placed(effect.path, roots, effect.shown)
    for state in (effect.before, effect.after):
        if state is not None and state.node not in _CARRIED:
            raise StaysHere(f"{effect.shown} is a {state.node.value}, which only its own machine has")
    if effect.after is not None:
        _require_plain(effect.before, effect.after, effect.shown)
    was = None if effect.before is None else _known(effect.before, effect.before_digest)
    now = None if effect.after is None else _known(effect.after, effect.digest)
    return Item(where=where, path=relative, was=was, now=now)


def _placed(path: bytes, roots: Roots, shown: str) -> tuple[Where, str]:
    """Return the inner one of project and output folder that holds the path, and the path relative to it."""
    places: list[tuple[Where, Path]] = [("project", roots.project), ("workspace", roots.workspace)]
    for where, root in sorted(places, key=lambda one: -len(one[1].parts)):
        above = os.fsencode(root) + b"/"
        if path.startswith(above):
            return where, printable_path(path.removeprefix(above))
    raise StaysHere(f"it changes {shown}, outside of project and output folder")


def _require_plain(before: NodeState | None, after: NodeState, shown: str) -> None:
    """Raise StaysHere for owners and attributes that the task gave a path."""
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
    """Copy the content from the workspace; it must be exactly `size` bytes."""
    try:
        with open(os.open(effect.source, FILE_FLAGS), "rb") as file:
            written = sum(into.write(piece) for piece in iter(lambda: file.read(_CHUNK), b""))
    except PermissionError as error:
        raise SandboxError(f"{effect.shown} cannot be read: {error.strerror}") from error
    if written != size:
        raise SandboxError(f"{effect.shown} changed while it was packed; try again")
