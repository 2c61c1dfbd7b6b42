"""Lays one file down in a layer, as a command would have written it: no process is needed for that."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack
from pathlib import Path

from artoo.contracts.changes import Node, printable_path
from artoo.contracts.errors import SandboxError
from artoo.world.below import Below, below
from artoo.world.files import parent_of, set_metadata
from artoo.world.journal import StateRecord
from artoo.world.nodes import DIRECTORY_FLAGS, NodeState
from artoo.world.stage import Layer


def put(layer: Layer, path: Path, content: bytes) -> None:
    """Writes a file below the layer's root into the empty layer, with the directories above it.

    `path` is resolved. Raises SandboxError when it cannot hold a file, OSError (disk full).
    """
    shown = printable_path(os.fsencode(path))
    parts = path.relative_to(layer.root).parts
    with ExitStack() as opened:
        lower: Below | None = opened.enter_context(below(layer.root, layer.below))
        here = layer.upper
        for part in parts[:-1]:
            found = lower.find(part) if lower is not None else None
            if found is not None and not found.state.is_directory:
                raise SandboxError(f"{shown} cannot be written: {part} is not a directory")
            here.joinpath(part).mkdir()
            _dress(here, part, None if found is None else found.state)
            lower = opened.enter_context(lower.enter(part)) if lower is not None and found is not None else None
            here /= part
        found = lower.find(parts[-1]) if lower is not None else None
        if found is not None and found.state.node is not Node.FILE:
            raise SandboxError(f"{shown} is not a regular file: choose another path")
        (here / parts[-1]).write_bytes(content)
        _dress(here, parts[-1], None if found is None else found.state)


def _dress(directory: Path, name: str, like: NodeState | None) -> None:
    """Owner, mode and attributes as they are below, so that only the content differs."""
    record = StateRecord.of(like)
    if record is None:
        return
    descriptor = os.open(directory, DIRECTORY_FLAGS)
    try:
        set_metadata(descriptor, name, record, times=record.node is Node.DIRECTORY)
    finally:
        os.close(descriptor)


def put_in_scratch(scratch: Path, relative: Path, content: bytes) -> None:
    """Writes a file in the task's own /tmp, where no layer is; no step of the way may be a link.

    Raises SandboxError when something else stands there.
    """
    try:
        for above in reversed(relative.parents[:-1]):
            with parent_of(os.fspath(scratch), os.fspath(above)) as (directory, name):
                if not _is_there(directory, name):
                    os.mkdir(name, dir_fd=directory)
        with parent_of(os.fspath(scratch), os.fspath(relative)) as (directory, name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with open(os.open(name, flags, 0o644, dir_fd=directory), "wb") as file:
                file.write(content)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise SandboxError(f"/tmp/{relative} is not a regular file: choose another path") from error
        raise


def _is_there(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
