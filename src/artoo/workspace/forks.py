"""Copies a whole workspace on disk: for a second solution, and for another agent that continues from it."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import MIB
from artoo.sandbox.limits.usage import disk_usage
from artoo.sandbox.reading.programs import find_program
from artoo.workspace.changes.manifest import Entry, Manifest, stamp_of
from artoo.workspace.directory import Covered, WorkspaceDirectory
from artoo.workspace.fs.remove_tree import remove_tree
from artoo.workspace.fs.stat import NodeState, state_of

MOST_BYTES, MOST_PATHS = 1_024 * MIB, 50_000
"""How large a workspace may be that is copied."""

_CHANGED = Entry((), ())
"""The entry of a copied path that the task has changed or deleted: no state has this stamp."""


def copy_workspace(source: WorkspaceDirectory, target: WorkspaceDirectory) -> None:
    """Copy a workspace; what is at `target` is replaced. Blocking; the record comes last.

    Raises SandboxError when it is too large or cannot be copied; then nothing is left at `target`.
    """
    remove_tree(target.base)
    try:
        _copy(source, target)
    except OSError as error:
        raise SandboxError(f"the workspace cannot be copied: {error.strerror}; free space") from error
    finally:
        if not target.exists:
            with suppress(OSError):
                remove_tree(target.base)


def _copy(source: WorkspaceDirectory, target: WorkspaceDirectory) -> None:
    covered = source.covered()
    size, paths = disk_usage((*(one.place for one in covered), source.scratch), MOST_BYTES, MOST_PATHS)
    if size > MOST_BYTES or paths > MOST_PATHS:
        raise SandboxError("the workspace is too large to be copied, so there is no second solution of it")
    target.output.mkdir(mode=0o700, parents=True)
    for one in covered:
        place = target.base / one.place.relative_to(source.base)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _copy_tree(one.place, place)
        if one.place == source.upper(one.number):
            target.work(one.number).mkdir(mode=0o700)
    _copy_tree(source.scratch, target.scratch)
    if source.base_file.exists():
        shutil.copy2(source.base_file, target.base_file)  # its time says when the user's files were looked at
    if source.manifest.exists():
        _copy_manifest(covered, source, target)
    target.write_record(source.record().model_copy(update={"task_id": target.task_id}))


def _copy_tree(source: Path, target: Path) -> None:
    """Copy a tree with everything that an overlay reads in it: whiteouts and all attributes."""
    command = (find_program("cp") or "cp", "-a", "--", source, target)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, env={"LC_ALL": "C"})
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise SandboxError(f"the workspace cannot be copied: {said[-1] if said else 'cp failed'}")


def _copy_manifest(covered: tuple[Covered, ...], source: WorkspaceDirectory, target: WorkspaceDirectory) -> None:
    """Write the new copies' manifest: paths that the task has not changed have the stamps of the new copies."""
    old, new = Manifest.read(source.manifest), Manifest(target.manifest)
    places = {one.number: (one.place, target.copy(one.number)) for one in covered}
    for key, entry in old.entries.items():
        was, now = (_state(place, key[1]) for place in places[key[0]])
        same = was is not None and now is not None and not old.is_changed(key, was)
        new.entries[key] = Entry(entry.source, stamp_of(now)) if same and now is not None else _CHANGED
    new.save()


def _state(place: Path, path: str) -> NodeState | None:
    try:
        return state_of(os.lstat(place / path))
    except OSError:  # the task deleted it, or replaced a directory above it
        return None
