"""Restore the paths of an apply after failure, crash or undo, and decide which paths have changed since.

It is decided for every path separately whether it is restored. A path that the user has changed since is not
restored, and is reported. In an interrupted apply or undo (`lenient`), a path may be in an intermediate state. It
may be missing while its kind changes, or its metadata may be set only in part.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from artoo.contracts.changes import Conflict, Node
from artoo.contracts.errors import SandboxError
from artoo.workspace.commit.dirfd_ops import copy, link, same_version, sync
from artoo.workspace.commit.execute import blocked, execute, to_sync
from artoo.workspace.commit.manifest import DONE, NOTE, STAGING, Manifest, Record, Step, is_directory
from artoo.workspace.commit.prepare import PART, clean_slots, openings
from artoo.workspace.files.walker import Walker
from artoo.workspace.fs.names import text_of
from artoo.workspace.fs.stat import NodeState, chmod_at, glance, with_rights
from artoo.workspace.git.act import move_back


class RestorePlan(NamedTuple):
    """The reverse steps of a restore, and the reasons why the other paths are not restored, by printable path."""

    back: tuple[Step, ...]
    refused: dict[str, str]


def roll_back(record: Record, manifest: Manifest) -> tuple[list[Conflict], list[Step]]:
    """Restore all paths of an apply that failed or that a crash interrupted. The call may be repeated.

    Returns the paths at which the user's present version stays, and the steps whose before-image could not be
    restored. Raises SandboxError if the system refuses. Then the next start tries again.
    """
    try:
        # With `done`, a crash in the middle of the roll-back would make the record count as applied.
        record.unmark(DONE)  # the file may exist although syncing it failed
        conflicts = [one for act in reversed(manifest.git) for one in move_back(act)]
        _open_directories(manifest.steps)
        # Git is undone first. If it refuses completely, the files of its commit must not be restored either.
        plan = judge(record, manifest.steps, lenient=True)
        carry_out(record, manifest.steps, plan)
        left = [step for step in manifest.steps if step.path in plan.refused and _has_image(record, step)]
        clean_slots(record, (step for step in manifest.steps if step not in left))
    except OSError as error:
        raise SandboxError(
            f"the changes failed half-way and could not be taken back ({error}); free space or permissions, then"
            " start artoo again: it restores everything first"
        ) from error
    return conflicts + [Conflict(path=path, reason=reason) for path, reason in plan.refused.items()], left


def _has_image(record: Record, step: Step) -> bool:
    with Walker() as own:
        slot = own.look(text_of(step.slot), attributes=False) if step.keeps else None
    return step.keeps and (step.image or (slot is not None and not _is_new(step, slot)))


def _open_directories(steps: Sequence[Step]) -> None:
    """Restore the owner's permissions of directories from which the apply removed them, so that their entries can
    be reached."""
    closed = [
        one for one in steps if one.after is not None and one.after.is_directory and not one.after.mode & 0o100
    ]
    with Walker() as walker:
        for step in sorted(closed if os.geteuid() != 0 else (), key=lambda one: one.path.count("/")):
            now = walker.look(step.where)
            if now is not None and step.after is not None and now.mode == step.after.mode:
                chmod_at(*walker.place(step.where), now.mode | 0o700)


def settle_rolled_back(record: Record, manifest: Manifest, left: Sequence[Step]) -> None:
    """Delete the record of an apply that was rolled back, or keep only the steps in `left`. Raises OSError."""
    if left:
        record.unmark(STAGING, NOTE)  # a slot of these steps holds the user's own file
        record.keep_only(manifest.model_copy(update={"steps": tuple(left), "git": ()}))
    else:
        record.forget()


def carry_out(record: Record, steps: Sequence[Step], plan: RestorePlan) -> None:
    """Put the old contents into their slots, restore the paths and sync them. Raises OSError."""
    forward = {step.number: step for step in steps}
    with Walker() as images, Walker() as staged:
        for step in plan.back:
            if step.puts:
                _fetch(record, forward[step.number], images, staged, text_of(step.slot))
    execute(plan.back)
    sync(to_sync(plan.back))


def _fetch(record: Record, step: Step, images: Walker, staged: Walker, slot: str) -> None:
    """Make sure that the slot holds the old content.

    It holds the old content already if the apply exchanged slot and path. Otherwise the before-image is linked or
    copied to it.
    """
    assert step.before is not None
    directory, name = staged.place(slot)
    if (there := glance(directory, name)) is not None:
        if not _is_new(step, there) and (not step.image or _is_unwritten(step.before, there)):
            return
        os.unlink(name, dir_fd=directory)
    image = images.place(record.image(step))
    if link(image, (directory, name)):
        return
    part = name + PART
    with suppress(FileNotFoundError):
        os.unlink(part, dir_fd=directory)
    with with_rights(*image, step.before.mode, 0o400):
        copy(image, step.before, (directory, part))
    os.rename(part, name, src_dir_fd=directory, dst_dir_fd=directory)


def _is_new(step: Step, there: NodeState) -> bool:
    """True if a slot holds the new version of the step and not the user's old one."""
    return step.after is not None and step.after.node is there.node and step.after.inode == there.inode


def _is_unwritten(before: NodeState, there: NodeState) -> bool:
    """True if the old content was not written since. A program may still have the file open and write to it."""
    return there.node is not Node.FILE or (there.size, there.mtime_ns) == (before.size, before.mtime_ns)


def judge(record: Record, steps: Sequence[Step], *, lenient: bool) -> RestorePlan:
    """Return a plan: decide for each path whether it can be restored. Raises OSError."""
    back: list[Step] = []
    refused: dict[str, str] = {}
    with Walker() as targets, Walker() as own:
        judgement = _Judgement(record, targets, own, lenient)
        for step in steps:
            try:
                verdict = judgement.of(step)
            except PermissionError:
                verdict = "the directory that holds it is closed to you"
            if isinstance(verdict, str):
                refused[step.path] = verdict
            elif verdict is not None:
                back.append(verdict)
        refused |= blocked(back, targets)
        back = [step for step in back if step.path not in refused]
        back += openings(back, targets)
    return RestorePlan(tuple(back), refused)


class _Judgement(NamedTuple):
    """The record, and the walkers with which its steps are judged."""

    record: Record
    targets: Walker
    own: Walker
    lenient: bool

    def of(self, step: Step) -> Step | str | None:
        """Return the reverse step for a path, or the reason why the path is not restored. Return None if no step is
        needed."""
        now = self.targets.look(step.where)
        before, after = step.before, step.after
        if step.stays:
            return self._directory(step, now)
        if is_directory(now) and is_directory(before):
            # the apply has not removed it yet, or a restore has recreated it with a temporary mode
            return replace(step, before=now, after=before) if self.lenient else None
        if same_version(now, before):
            behind_link = now is None and after is not None and os.path.lexists(step.where)
            return "a directory above it is a link now" if behind_link and not self.lenient else None
        slot = self.own.look(text_of(step.slot)) if step.slot else None
        if not self._is(now, after, step.after_sha256, step.where, exact=not self.lenient):
            if self._is(now, before, step.before_sha256, step.where, exact=False):
                return None
            swaps = step.takes_away and after is not None
            if self.lenient and slot is not None and _is_new(step, slot) and not swaps:
                return None  # the apply has not replaced it yet, and the user has changed it meanwhile
            if not (self.lenient and swaps and now is None):
                return "it was changed since" if now is not None else "it was removed since"
        elif not (self.lenient or now is None or after is None or now.is_directory or now.same_metadata(after)):
            return "its mode, owner or attributes were changed since"
        return self._no_content(step, slot) or replace(step, before=now, after=before)

    def _is(
        self, now: NodeState | None, state: NodeState | None, sha256: str | None, path: str, *, exact: bool
    ) -> bool:
        """True if a path has the given state. `exact`: true to read a file even if its inode and time are equal."""
        if now is None or state is None:
            return now is None and state is None
        if now.node is not state.node or now.is_directory:
            return now.node is state.node
        if now.node is not Node.FILE:
            return now.target == state.target if now.node is Node.LINK else now.inode == state.inode
        same = same_version(now, state)
        if now.size != state.size or sha256 is None or (same and not exact):
            return same
        digest = self.targets.digest(path, now)
        return same if digest is None else digest == sha256

    def _no_content(self, step: Step, slot: NodeState | None) -> str | None:
        """Return why the old content cannot be restored. Return None if it can, or if no content is needed."""
        before = step.before
        if before is None or before.is_directory:
            return None
        copied = self.own.look(self.record.image(step)) if step.image else None
        kept = copied or (None if slot is None or _is_new(step, slot) else slot)
        if kept is None or kept.node is not before.node:
            return "its old content is no longer kept"
        if not self.lenient and not _is_unwritten(before, kept):
            return "its kept old content was changed by a program that still had it open"
        return None

    def _directory(self, step: Step, now: NodeState | None) -> Step | str | None:
        """Judge a directory whose metadata alone were changed."""
        before, after = step.before, step.after
        assert before is not None
        assert after is not None
        if now is None or not now.is_directory:
            return "it was removed since" if now is None else "it was changed since"
        if now.same_metadata(before):
            return None
        if not self.lenient and not now.same_metadata(after):
            return "its mode, owner or attributes were changed since"
        return replace(step, before=now, after=before)
