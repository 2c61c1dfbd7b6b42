"""Restores what an apply changed: after a failure or a crash, or because the user undoes it.

Every path is judged on its own. What the user changed since stays, and is reported. In the middle of an apply or of
an undo (`lenient`) a path may also be half-way: missing between two kinds of thing, or with metadata half set.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from artoo.contracts.changes import Conflict, Node
from artoo.contracts.errors import SandboxError
from artoo.workspace.commit.dirfd_ops import (
    Location,
    Walker,
    copy,
    digest_at,
    link,
    open_to_sync,
    same_version,
    sync,
)
from artoo.workspace.commit.execute import ChangedMeanwhile, Move, blocked, execute, to_sync
from artoo.workspace.commit.manifest import Manifest, Record, Step
from artoo.workspace.commit.slots import PART, Slots
from artoo.workspace.commit.temporary_modes import Modes, lock_again
from artoo.workspace.fs.stat import NodeState, glance, with_rights
from artoo.workspace.git.act import move_back

_TRIES = 3
"""A roll-back that the user's own saving disturbs looks at everything anew this often."""


class Plan(NamedTuple):
    """What to do: moves with their steps, and reasons, by printable path, why other paths are left alone."""

    moves: tuple[tuple[Step, Move], ...]
    refused: dict[str, str]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(step.path for step, _ in self.moves)


Change = tuple[Location, NodeState | None, NodeState | None, bool]
"""A path, what was and what is to be there, and whether it stays and only its metadata changes."""


def directories_of(changes: Iterable[Change]) -> set[Location]:
    """Return the directories that must be writable for these changes: those above, and those that come or go."""
    found: set[Location] = set()
    for where, before, after, in_place in changes:
        found.add(where.above)
        if not in_place and any(state is not None and state.is_directory for state in (before, after)):
            found.add(where)
    return found


def changes_in(steps: Iterable[Step]) -> Iterator[Change]:
    """Yield the changes of a record's steps."""
    return ((step.where, step.before, step.after, step.in_place) for step in steps)


def slots_needed(steps: Iterable[Step]) -> tuple[list[tuple[int, Location]], set[Location]]:
    """Return the steps that need a slot, and the directories that these steps remove or make."""
    listed = [step for step in steps if not step.in_place]
    files = [one for one in listed if any(state and not state.is_directory for state in (one.before, one.after))]
    return [(one.number, one.where) for one in files], {one.where for one in listed}


def roll_back(record: Record, manifest: Manifest, modes: Modes) -> tuple[list[Conflict], list[Step]]:
    """Restore everything of an apply that failed or that a crash interrupted. May be repeated.

    Return what stays as the user has it now, and the steps whose before-image found no place to return to. Raises
    SandboxError if the system refuses; the next start tries again.
    """
    try:
        record.unmark_done()
        conflicts = [one for act in reversed(manifest.git) for one in move_back(act)]
        slots = Slots(record, beside=manifest.beside)
        plan = _restore_all(record, manifest, slots, modes, _TRIES)
        kept = [step for step in manifest.steps if step.path in plan.refused and step.image]
        slots.clean({step.number for step in kept})
    except OSError as error:
        raise SandboxError(
            f"the changes failed half-way and could not be taken back ({error}); free space or permissions, then"
            " start artoo again: it restores everything first"
        ) from error
    return conflicts + [Conflict(path=path, reason=reason) for path, reason in plan.refused.items()], kept


def _restore_all(record: Record, manifest: Manifest, slots: Slots, modes: Modes, tries: int) -> Plan:
    plan = judge(record, manifest.steps, slots, modes)
    try:
        carry_out(record, plan, slots, modes)
    except ChangedMeanwhile:
        if tries == 1:
            raise
        return _restore_all(record, manifest, slots, modes, tries - 1)
    return plan


def settle_record(record: Record, manifest: Manifest, left: Sequence[Step]) -> None:
    """Forget a record whose paths were restored, or keep what is `left` of it, and `manifest.git`.

    Called when no directory is open any more, as the record knows which are. Raises OSError, SandboxError.
    """
    lock_again(record)
    if left or manifest.git:
        record.keep_only(manifest.model_copy(update={"steps": tuple(left)}))
    else:
        record.forget()


def carry_out(record: Record, plan: Plan, slots: Slots, modes: Modes) -> None:
    """Fetch the old contents into their slots, restore the paths and sync them. Raises OSError."""
    with Walker() as images, Walker() as staged:
        for step, move in plan.moves:
            if move.puts:
                _fetch(record, step, images, staged, move.slot)
    moves = [move for _, move in plan.moves]
    execute(moves, modes)
    with Walker() as walker:
        sync(open_to_sync(walker, to_sync(moves)))


def _fetch(record: Record, step: Step, images: Walker, staged: Walker, slot: Location) -> None:
    """Make sure that the slot holds the old content: what came out of the path lies there, or the image is linked
    or copied there."""
    assert step.before is not None
    directory, name = staged.place(slot)
    if (there := glance(directory, name)) is not None:
        if not _is_new(step, there):
            return
        os.unlink(name, dir_fd=directory)
    image = images.place(record.image(step))
    if link(image, (directory, name)):
        return
    part = name + PART
    with suppress(FileNotFoundError):
        os.unlink(part, dir_fd=directory)
    with with_rights(*image, step.before.mode if step.before.node is Node.FILE else 0o777, 0o400):
        copy(image, step.before, (directory, part))
    os.rename(part, name, src_dir_fd=directory, dst_dir_fd=directory)


def _is_new(step: Step, there: NodeState) -> bool:
    """True if this is the new version of the step, staged or taken away: not what the user had."""
    return step.after is not None and step.after.node is there.node and step.after.inode == there.inode


def judge(
    record: Record, steps: Sequence[Step], slots: Slots, modes: Modes, lenient: Collection[str] | None = None
) -> Plan:
    """Decide for each path whether it can be restored. `lenient`: paths that may be half-way; None: all of them.

    Raises OSError.
    """
    moves: list[tuple[Step, Move]] = []
    refused: dict[str, str] = {}
    with Walker() as targets, Walker() as own:
        judgement = _Judgement(record, slots, modes, targets, own)
        for step in steps:
            verdict = judgement.of(step, lenient is None or step.path in lenient)
            if isinstance(verdict, str):
                refused[step.path] = verdict
            elif verdict is not None:
                moves.append((step, verdict))
        refused |= blocked([move for _, move in moves], targets.look)
    return Plan(tuple(one for one in moves if one[0].path not in refused), refused)


class _Judgement(NamedTuple):
    """What is needed to judge the steps of one record."""

    record: Record
    slots: Slots
    modes: Modes
    targets: Walker
    own: Walker

    def of(self, step: Step, lenient: bool) -> Move | str | None:
        """Return how to restore a path, or why it is left alone; None if nothing is to be done."""
        where = step.where
        now = self.targets.look(where, attributes=True)
        if now is not None and where in self.modes:
            now = now._replace(mode=self.modes[where])
        if step.in_place:
            return _metadata(step, where, now, lenient)
        before, after = step.before, step.after
        swaps = before is not None and after is not None and before.is_directory != after.is_directory
        slot = self.own.look(self.slots.of(step.number))
        if now is not None and before is not None and now.is_directory and before.is_directory:
            # it was not removed yet, or is made again and has a working mode
            return Move(where, step.path, now, before, Location("", ""), in_place=True) if lenient else None
        if same_version(now, before):
            behind_link = now is None and after is not None and os.path.lexists(os.path.join(*where))
            return "a directory above it is a link now" if behind_link and not lenient else None
        if not self._is(now, after, step.after_sha256, where, exact=not lenient):
            if self._is(now, before, step.before_sha256, where, exact=False):
                return None
            if lenient and slot is not None and _is_new(step, slot) and not swaps:
                return None  # it was not replaced yet: the user changed it meanwhile
            if not (lenient and swaps and now is None):
                return "it was changed since" if now is not None else "it was removed since"
        elif not (lenient or now is None or after is None or now.is_directory or now.same_metadata(after)):
            return "its mode, owner or attributes were changed since"
        reason = self._no_content(step, slot, lenient)
        return reason or Move(where, step.path, now, before, self.slots.of(step.number))

    def _is(
        self, now: NodeState | None, state: NodeState | None, sha256: str | None, where: Location, *, exact: bool
    ) -> bool:
        """True if a path is at a state. `exact`: the content of a file is read even if inode and time agree."""
        if now is None or state is None:
            return now is None and state is None
        if now.node is not state.node:
            return False
        if now.node is Node.LINK:
            return now.target == state.target
        if now.node is not Node.FILE:
            return now.is_directory or now.inode == state.inode
        if now.size != state.size:
            return False
        same = same_version(now, state)
        if sha256 is None or (same and not exact):
            return same
        digest = digest_at(self.targets, where, now.size)
        return same if digest is None else digest == sha256

    def _no_content(self, step: Step, slot: NodeState | None, lenient: bool) -> str | None:
        """Return why the old content cannot be restored; None if it can, or none is needed."""
        before = step.before
        if before is None or before.is_directory or (slot is not None and not _is_new(step, slot)):
            return None
        image = self.own.look(self.record.image(step))
        if image is None or image.node is not before.node:
            return "its old content is no longer kept"
        if (
            not lenient
            and image.node is Node.FILE
            and (image.size, image.mtime_ns) != (before.size, before.mtime_ns)
        ):
            return "its kept old content was changed by a program that still had it open"
        return None


def _metadata(step: Step, where: Location, now: NodeState | None, lenient: bool) -> Move | str | None:
    """Judge a path of which only metadata was changed."""
    before, after = step.before, step.after
    assert before is not None
    assert after is not None
    if now is None:
        return "it was removed since"
    if now.node is not before.node or (not now.is_directory and now.inode != before.inode):
        return "it was changed since"
    mtime_ns = before.mtime_ns if now.mtime_ns == after.mtime_ns and not now.is_directory else now.mtime_ns
    end = before._replace(mtime_ns=mtime_ns, size=now.size)
    if now.same_metadata(before) and now.mtime_ns == mtime_ns:
        only_time = before.same_metadata(after) and now.mtime_ns != before.mtime_ns and not now.is_directory
        return "it was changed since" if only_time else None
    if lenient:
        end = _half_way(step, now, end)
    elif not now.same_metadata(after):
        return "its mode, owner or attributes were changed since"
    return Move(where, step.path, now, end, Location("", ""), in_place=True)


def _half_way(step: Step, now: NodeState, end: NodeState) -> NodeState:
    """Return the state to restore when only a part of the metadata may have been set: the user's own stays."""
    before, after = step.before, step.after
    assert before is not None
    assert after is not None
    ours = {mode | more for mode in (before.mode, after.mode) for more in (0, 0o600)}
    if before.xattrs != after.xattrs or (before.uid, before.gid) != (after.uid, after.gid):
        ours.add(now.mode)  # a new owner or access list changes the mode too
    return end._replace(
        uid=before.uid if now.uid in (before.uid, after.uid) else now.uid,
        gid=before.gid if now.gid in (before.gid, after.gid) else now.gid,
        mode=before.mode if now.mode in ours else now.mode,
        xattrs=before.xattrs if set(now.xattrs) <= {*before.xattrs, *after.xattrs} else now.xattrs,
    )
