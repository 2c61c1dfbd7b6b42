"""A submission is frozen when it is handed in: what is reviewed is what would be merged, to the byte."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import orjson

from artoo.contracts.changes import Node
from artoo.contracts.errors import SandboxError
from artoo.tools.layers.copying import CopyLimits, copy_file
from artoo.tools.layers.difference import Comparison, Difference
from artoo.tools.layers.layer import TREES, Layer
from artoo.tools.layers.manifest import Manifest, read_manifest
from artoo.world.journal import record_bytes, sync_directory
from artoo.world.nodes import NodeState, read_state
from artoo.world.stage import remove_tree


def submit(layer: Layer, limits: CopyLimits | None = None) -> tuple[Difference, ...]:
    """Freezes what the layer changed, and returns it. May be repeated. Blocking; raises SandboxError.

    A submission that holds pipes, sockets or devices is refused: they cannot be merged.
    """
    manifest = read_manifest(layer.manifest)
    found = Comparison(manifest, limits or CopyLimits()).run([(tree, layer.copy_of(tree)) for tree in TREES])
    try:
        remove_tree(layer.submitted)
        layer.submitted.mkdir(mode=0o700)
        copy_changed(found, layer.place, layer.submitted)
        _write_rows(layer.changes, found)
        sync_directory(layer.place)
    except OSError as error:
        raise SandboxError(f"the work could not be submitted ({error}); free space, then try again") from error
    return submitted(layer)


def _write_rows(place: Path, found: Iterable[Difference]) -> None:
    with place.open("wb") as file:
        for one in found:
            mode = one.after.mode if one.after is not None else None
            file.write(orjson.dumps([one.tree, one.path, one.content, mode]) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def submitted(layer: Layer) -> tuple[Difference, ...]:
    """What was handed in. Raises SandboxError when it was not, or is damaged."""
    manifest = read_manifest(layer.manifest)
    try:
        rows = [cast("list[Any]", orjson.loads(line)) for line in layer.changes.read_bytes().splitlines()]
        return tuple(_difference(layer.submitted, manifest, *row) for row in rows)
    except (OSError, ValueError, TypeError) as error:
        raise SandboxError(f"what was submitted cannot be read ({error}); reject it") from error


def _difference(
    frozen: Path, manifest: Manifest, tree: str, path: str, content: str, mode: int | None
) -> Difference:
    base = manifest.get((tree, path))
    if mode is None:
        return Difference(tree, path, base, None)
    with parent_and_name(frozen / tree / record_bytes(path)) as (parent, name):
        state = read_state(parent, name)
    if state is None:
        raise ValueError(f"{path} is missing")
    return Difference(tree, path, base, replace(state, mode=mode), content)


def copy_changed(found: Iterable[Difference], source: Path, target: Path) -> None:
    """Copies the changed nodes of both trees, with the directories that lead to them. Raises OSError, SandboxError.

    Directories get modes that let their owner in; their own modes are in the differences.
    """
    for tree in TREES:
        (target / tree).mkdir(mode=0o700)
    twins: dict[tuple[int, int], str] = {}
    for one in found:
        if one.after is None:
            continue
        place = target / one.tree / record_bytes(one.path)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if one.after.is_directory:
            place.mkdir(mode=0o700, exist_ok=True)
        else:
            _copy_node(source / one.tree / record_bytes(one.path), one, one.after, place, twins)


def _copy_node(
    source: Path, one: Difference, state: NodeState, place: Path, twins: dict[tuple[int, int], str]
) -> None:
    if state.node is Node.LINK:
        place.symlink_to(os.fsdecode(state.target))
        return
    if state.node is not Node.FILE:
        raise SandboxError(f"{one.path} is a {state.node}, which cannot be submitted; remove it")
    identity = (state.device, state.inode)
    with parent_and_name(source) as (reading, name), parent_and_name(place) as (writing, as_name):
        content = copy_file(reading, name, writing, as_name, state, twins.get(identity))
    if content != one.content:
        raise SandboxError(f"{one.path} is not what it was a moment ago; try again")
    if state.links > 1:
        twins.setdefault(identity, str(place))


@contextmanager
def parent_and_name(path: Path) -> Generator[tuple[int, str]]:
    """The open directory that holds a path of artoo's own, and its last name."""
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor, path.name
    finally:
        os.close(descriptor)
