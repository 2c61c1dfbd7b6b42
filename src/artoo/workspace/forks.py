"""Copies a whole workspace on disk: for a second solution, and for another agent that continues from it."""

from __future__ import annotations

import shutil
from contextlib import suppress

from artoo.contracts.errors import SandboxError
from artoo.workspace.changes.manifest import Entry, Manifest, stamp_of
from artoo.workspace.directory import Covered, WorkspaceDirectory
from artoo.workspace.fs.copy_tree import CopyBound, copy_tree
from artoo.workspace.fs.remove_tree import remove_tree
from artoo.workspace.fs.stat import NodeState

_NEVER = Entry((), ())
"""A path that was copied and that the task has changed: no state has this stamp."""


def copy_workspace(source: WorkspaceDirectory, target: WorkspaceDirectory) -> None:
    """Copy a workspace; what is at `target` is replaced. Blocking; the record comes last.

    Raises SandboxError when it is too large or the disk is full; then nothing is left at `target`.
    """
    remove_tree(target.base)
    try:
        _copy(source, target)
    except OSError as error:
        with suppress(OSError):
            remove_tree(target.base)
        raise SandboxError(f"the workspace cannot be copied: {error.strerror}; free space") from error
    except BaseException:
        with suppress(OSError):
            remove_tree(target.base)
        raise


def _copy(source: WorkspaceDirectory, target: WorkspaceDirectory) -> None:
    target.base.mkdir(mode=0o700, parents=True)
    bound = CopyBound()
    manifest = Manifest.read(source.manifest) if source.manifest.exists() else None
    new = Manifest(target.manifest)
    for one in source.covered():
        if one.place == source.copy(one.number):
            target.copy(one.number).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _copy_one(one, target, bound, manifest, new)
        else:
            target.work(one.number).mkdir(mode=0o700, parents=True)
            copy_tree(one.place, target.upper(one.number), bound)
    copy_tree(source.scratch, target.scratch, bound)
    target.output.mkdir(mode=0o700)
    if source.base_file.exists():
        shutil.copyfile(source.base_file, target.base_file)
    new.save()
    target.write_record(source.record().model_copy(update={"task_id": target.task_id}))


def _copy_one(
    one: Covered, target: WorkspaceDirectory, bound: CopyBound, manifest: Manifest | None, new: Manifest
) -> None:
    """Copy a copy, with a manifest of which the new copy's unchanged paths have the new stamps."""

    def copied(path: bytes, was: NodeState, made: NodeState) -> None:
        entry = None if manifest is None else manifest.get(one.number, path)
        if entry is not None:
            same = entry.copy == stamp_of(was)
            new.put_entry(one.number, path, Entry(entry.source, stamp_of(made)) if same else _NEVER)

    copy_tree(one.place, target.copy(one.number), bound, copied)
    for number, path, _ in manifest.items() if manifest is not None else ():
        if number == one.number and new.get(number, path) is None:
            new.put_entry(number, path, _NEVER)  # the task deleted it
