"""Checks an apply against the user's files as they are now, and makes everything ready that it needs.

Nothing that the user sees changes here: before-images are linked or copied into the record, new contents are copied
into slots. So a full disk fails before the first path is replaced.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from artoo.contracts.changes import Conflict, Node
from artoo.contracts.errors import SandboxError
from artoo.workspace.changes.effect import Effect
from artoo.workspace.commit.atomic_rename import Place
from artoo.workspace.commit.dirfd_ops import (
    SYNC_ONE_BY_ONE,
    Location,
    Walker,
    copy,
    digest_at,
    link,
    open_to_sync,
    same_version,
)
from artoo.workspace.commit.execute import Move, blocked
from artoo.workspace.commit.manifest import Manifest, Record, Step, printable
from artoo.workspace.commit.slots import Slots
from artoo.workspace.commit.temporary_modes import Modes
from artoo.workspace.fs.stat import FILE_FLAGS, NodeState, chmod_at, glance, with_rights

_MADE = (Node.FILE, Node.DIRECTORY, Node.LINK)


def refuse_unsupported(effects: Iterable[Effect]) -> None:
    """Raise SandboxError for what is never applied: devices, pipes and sockets, and another thing as a root."""
    for effect in effects:
        after = effect.after
        if after is not None and after.node not in _MADE and not effect.in_place:
            raise SandboxError(
                f"{effect.shown} is a {after.node.value}, which artoo does not create; nothing was changed."
                " Apply other paths by naming them"
            )
        if not effect.relative and not (after is not None and after.is_directory):
            raise SandboxError(f"{effect.shown} is a root of the workspace, which is never removed or replaced")


def location_of(effect: Effect) -> Location:
    """Return where an effect happens, for the file system."""
    return Location(os.fsdecode(effect.root), os.fsdecode(effect.relative))


def check(effects: Sequence[Effect], modes: Modes) -> tuple[list[Step], list[Conflict]]:
    """Compare the approved state of each path with the state now; return steps without contents, and conflicts.

    `modes`: of directories that were made writable for this apply. Raises OSError.
    """
    steps: list[Step] = []
    conflicts: list[Conflict] = []
    with Walker() as walker:
        for number, effect in enumerate(effects):
            where = location_of(effect)
            now = walker.look(where, attributes=True)
            if now is not None and where in modes:
                now = now._replace(mode=modes[where])
            if (reason := _conflict(effect, where, now, walker)) is not None:
                conflicts.append(Conflict(path=effect.shown, reason=reason))
            elif not (effect.before is None and now is not None):  # else a directory that the user has made too
                steps.append(_step(number, effect, now))
        if conflicts:
            return steps, conflicts
        nowhere = Location("", "")
        moves = [Move(step.where, step.path, step.before, step.after, nowhere, step.in_place) for step in steps]
        reasons = blocked(moves, walker.look)
    return steps, [Conflict(path=path, reason=reason) for path, reason in reasons.items()]


def _step(number: int, effect: Effect, now: NodeState | None) -> Step:
    after = effect.after
    stays = after is not None and after.is_directory and now is not None and now.is_directory
    in_place = effect.in_place or stays
    if in_place and now is not None and after is not None:
        mtime_ns = now.mtime_ns if stays else after.mtime_ns
        metadata = {"mode": after.mode, "uid": after.uid, "gid": after.gid, "xattrs": after.xattrs}
        after = now._replace(mtime_ns=mtime_ns, **metadata)
    return Step(
        number=number,
        root=printable(os.fsdecode(effect.root)),
        path=effect.shown,
        before=now,
        after=after,
        in_place=in_place,
        before_sha256=effect.before_digest,
        after_sha256=effect.digest,
    )


def _conflict(effect: Effect, where: Location, now: NodeState | None, walker: Walker) -> str | None:
    """Return why an effect must not happen any more; None if its path is as it was approved."""
    before = effect.before
    if before is None:
        both_directories = now is not None and now.is_directory and effect.after is not None
        if now is None or (both_directories and effect.after is not None and effect.after.is_directory):
            return None
        return "it appeared meanwhile"
    if now is None:
        return "it is gone, or a directory above it was replaced"
    if now.node is not before.node:
        return "it was replaced meanwhile"
    if (now.inode, now.ctime_ns, now.size) == (before.inode, before.ctime_ns, before.size):
        return None
    if not now.same_metadata(before):
        return "its mode, owner or attributes were changed meanwhile"
    if now.is_directory or (now.node is Node.LINK and now.target == before.target):
        return None
    digest = None if effect.before_digest is None else digest_at(walker, where, now.size)
    same = same_version(now, before) if digest is None else digest == effect.before_digest
    return None if same else "it was changed meanwhile"


class _Sources(Walker):
    """A walker in the workspace's own directories, which a command may have closed to their owner."""

    def __init__(self, opened: ExitStack) -> None:
        super().__init__()
        self._opened = opened

    def _step(self, directory: int, name: str) -> int:
        seen = glance(directory, name)
        if seen is not None and seen.is_directory and seen.mode & 0o100 == 0 and os.geteuid() != 0:
            kept = os.dup(directory)
            self._opened.callback(os.close, kept)
            self._opened.callback(chmod_at, kept, name, seen.mode)
            chmod_at(kept, name, seen.mode | 0o700)
        return super()._step(directory, name)


def prepare(record: Record, steps: Iterable[Step], effects: Sequence[Effect], slots: Slots) -> list[Step]:
    """Keep before-images and stage new contents; return the steps with what is known then.

    Raises OSError (full disk), SandboxError.
    """
    made: list[Step] = []
    twins: dict[tuple[int, int, str], Location] = {}
    with ExitStack() as opened, Walker() as targets, Walker() as staged, Walker() as images:
        sources = opened.enter_context(_Sources(opened))
        for step in steps:
            if step.in_place:
                made.append(step)
                continue
            if step.before is not None and not step.before.is_directory:
                _keep_image(step, targets.place(step.where), images.place(record.image(step)))
                step = replace(step, image=True)
            if step.after is not None and not step.after.is_directory:
                effect, slot = effects[step.number], slots.of(step.number)
                twin = twins.setdefault((step.after.device, step.after.inode, slot.above.relative), slot)
                after = _stage(effect, step.after, sources, staged, slot, None if twin == slot else twin)
                step = replace(step, after=after)
            made.append(step)
    return made


def _keep_image(step: Step, target: Place, image: Place) -> None:
    """Keep what is at a path: by a hard link, because artoo replaces it by a rename and never writes into it.

    A file with other names is copied, because a program may write into it by one of these.
    """
    assert step.before is not None
    if (step.before.node is not Node.FILE or step.before.links == 1) and link(target, image):
        return
    try:
        copy(target, step.before, image)
    except PermissionError as error:
        if step.before.uid == os.geteuid():
            os.unlink(image[1], dir_fd=image[0]) if glance(*image) is not None else None
            if link(target, image):  # closed to its owner
                return
            raise
        raise SandboxError(
            f"{step.path} belongs to another user ({step.before.uid}): no undo could restore it as it was, so"
            " nothing was changed; apply other paths by naming them, and change this one yourself"
        ) from error


def _stage(
    effect: Effect, after: NodeState, sources: Walker, staged: Walker, slot: Location, twin: Location | None
) -> NodeState:
    """Copy the new version into its slot; return its state there. Files that the task linked stay linked."""
    if twin is not None and after.links > 1:
        with Walker() as other:
            if link(other.place(twin), staged.place(slot)):
                return _inode(after, staged, slot)
    if after.node is Node.LINK:
        inode = copy(None, after, staged.place(slot))
        return after._replace(inode=inode)
    root, relative = os.path.split(effect.source)
    if effect.source.endswith(b"/" + effect.relative):  # a long path is reached in steps
        root, relative = effect.source[: -len(effect.relative) - 1], effect.relative
    source = sources.place(Location(os.fsdecode(root), os.fsdecode(relative)))
    try:
        with with_rights(*source, after.mode, 0o400):
            inode = copy(source, after, staged.place(slot))
    except PermissionError as error:
        raise OSError(error.errno, "its owner or attributes cannot be set", effect.shown) from error
    return after._replace(inode=inode)


def _inode(after: NodeState, staged: Walker, slot: Location) -> NodeState:
    seen = staged.look(slot)
    return after if seen is None else after._replace(inode=seen.inode)


def prepared_files(record: Record, manifest: Manifest, slots: Slots, written: Path) -> Iterator[int]:
    """Yield what must be durable before the manifest counts: contents, images, the manifest, all names.

    Of many files in one directory only as many as make `sync` sync their file system as a whole.
    """
    own = (record.place / name for name in ("", "..", "../..", "images", "new"))
    for path in (written, *own):
        yield os.open(path, FILE_FLAGS)
    files: dict[Location, list[Location]] = {directory: [directory] for directory in slots.directories()}
    for step in manifest.steps:
        if step.after is not None and step.after.node is Node.FILE and not step.in_place:
            slot = slots.of(step.number)
            files.setdefault(slot.above, []).append(slot)
        if step.image:
            image = record.image(step)
            files.setdefault(image.above, []).append(image)
    with Walker() as walker:
        for listed in files.values():
            yield from open_to_sync(walker, listed[: SYNC_ONE_BY_ONE + 1])
