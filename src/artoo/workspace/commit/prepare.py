"""Check an apply for conflicts, and stage new contents and before-images in slots.

The user's paths are not changed here. New contents are linked or copied into slots. A before-image is copied if the
slot cannot become the before-image. A full disk therefore causes an error before the first path is replaced.

A slot is on the same mount as its target, so that it can be renamed. It is in the record if that is on the same
mount. Otherwise it is a hidden file in the nearest parent of the target that exists and is not removed.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache

from artoo.contracts.changes import Conflict, Node
from artoo.contracts.errors import SandboxError
from artoo.workspace.changes.effect import Effect
from artoo.workspace.commit.dirfd_ops import SYNC_ONE_BY_ONE, copy, exchange, link, mount_of, same_version
from artoo.workspace.commit.execute import blocked, is_closed
from artoo.workspace.commit.manifest import MANIFEST, NOTE, Record, Step, holder_of, is_directory
from artoo.workspace.files.walker import Place, Walker
from artoo.workspace.fs.names import printable, text_of
from artoo.workspace.fs.stat import NodeState, at, with_rights

PART = "~"
"""The suffix of a slot while a restore copies into it, so that an incomplete copy never has the name of a slot."""
_MADE = (Node.FILE, Node.DIRECTORY, Node.LINK)


def refuse_unsupported(effects: Iterable[Effect]) -> None:
    """Raise SandboxError for effects that are never applied: changes to devices, pipes or sockets, and replaced or
    removed root directories."""
    for effect in effects:
        after = effect.after
        if after is not None and after.node not in _MADE:
            raise SandboxError(
                f"{effect.shown} is a {after.node.value}, which artoo does not create; nothing was changed."
                " Apply other paths by naming them"
            )
        if not effect.relative and not is_directory(after):
            raise SandboxError(f"{effect.shown} is a root of the workspace, which is never removed or replaced")


def check(effects: Sequence[Effect]) -> tuple[list[Step], list[Conflict]]:
    """Compare the approved state of each path with the present state. Returns steps that have no contents yet, and
    the conflicts.

    Raises OSError.
    """
    steps: list[Step] = []
    conflicts: list[Conflict] = []
    with Walker() as walker:
        for number, effect in enumerate(effects):
            path = os.fsdecode(effect.path)
            now = walker.look(path, attributes=effect.before is not None)
            if (reason := _conflict(effect, path, now, walker)) is not None:
                conflicts.append(Conflict(path=effect.shown, reason=reason))
            # otherwise the user has made the same directory in the meantime
            elif effect.before is not None or now is None:
                steps.append(_step(number, effect, now))
        if conflicts:
            return [], conflicts
        reasons = blocked(steps, walker)
        steps += openings(steps, walker)
    return steps, [Conflict(path=path, reason=reason) for path, reason in reasons.items()]


def _step(number: int, effect: Effect, now: NodeState | None) -> Step:
    after = effect.after
    if after is not None and now is not None and now.is_directory and after.is_directory:
        after = now._replace(mode=after.mode, uid=after.uid, gid=after.gid, xattrs=after.xattrs)
    return Step(number, effect.shown, now, after, before_sha256=effect.before_digest, after_sha256=effect.digest)


def openings(steps: Sequence[Step], walker: Walker) -> list[Step]:
    """Return a step for each directory that must be made writable for the other steps. Root needs no such steps."""
    if os.geteuid() == 0:
        return []
    known = {step.where for step in steps}
    number = max((step.number for step in steps), default=0)
    found: list[Step] = []
    for above in sorted({holder_of(step.where) for step in steps if not step.stays} - known):
        state = walker.look(above)
        if state is not None and is_closed(state) and state.uid == os.geteuid():
            number += 1
            found.append(Step(number, printable(above), state, state))
    return found


def _conflict(effect: Effect, path: str, now: NodeState | None, walker: Walker) -> str | None:
    """Return the reason why an effect must not be applied now, or None if its path is in the approved state."""
    before = effect.before
    if before is None:
        makes_directory = is_directory(effect.after)
        return None if now is None or (makes_directory and now.is_directory) else "it appeared meanwhile"
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
    # Git and editors rewrite files with the same content, so the content is compared instead of the inode.
    digest = None if effect.before_digest is None else walker.digest(path, now)
    same = same_version(now, before) if digest is None else digest == effect.before_digest
    return None if same else "it was changed meanwhile"


# --- slots --------------------------------------------------------------------------------------------------------


def choose_slots(record: Record, steps: Sequence[Step]) -> None:
    """Choose a slot for each step that needs one and has no usable one yet. Raises OSError."""
    leaving = {step.where for step in steps if step.takes_away}
    token = secrets.token_hex(6)
    known: dict[str, str] = {}
    with Walker() as walker:
        home = mount_of(walker.directory(record.slots))
        for step in steps:
            if not (step.puts or step.keeps) or (step.slot and _holds(walker, step.slot)):
                continue
            above = holder_of(step.where)
            if above not in known:
                near, mount = _nearest(walker, above, leaving)
                known[above] = printable(f"{record.slots}/" if mount == home else f"{near}/.artoo-{token}-")
            step.slot = f"{known[above]}{step.number}"


def _holds(walker: Walker, slot: str) -> bool:
    """True if the directory of a slot exists."""
    return walker.look(holder_of(text_of(slot)), attributes=False) is not None


def _nearest(walker: Walker, path: str, leaving: Collection[str]) -> tuple[str, tuple[int, int]]:
    """Return the nearest parent directory that exists, is not removed and is writable, and its mount.

    The search does not leave the mount. If no directory there is writable, the nearest one is returned. Writing to
    it then raises the system's error.
    """
    first: tuple[str, tuple[int, int]] | None = None
    while True:
        with suppress(FileNotFoundError, NotADirectoryError):
            descriptor = walker.directory(path)
            found = path, mount_of(descriptor)
            first = first or found
            if found[1] != first[1]:
                return first
            if path not in leaving and os.access(".", os.W_OK, dir_fd=descriptor):
                return found
        if path == "/":
            assert first is not None
            return first
        path = holder_of(path)


def is_beside(record: Record, step: Step) -> bool:
    """True if the slot of a step is next to its target, and false if it is in the record."""
    return step.slot != "" and holder_of(text_of(step.slot)) != record.slots


def clean_slots(record: Record, steps: Iterable[Step]) -> None:
    """Delete the slots of steps. The call may be repeated. Raises OSError."""
    with Walker() as walker:
        for step in steps:
            if step.slot:
                with suppress(FileNotFoundError, NotADirectoryError):
                    directory, name = walker.place(text_of(step.slot))
                    for each in (name + PART, name):
                        with suppress(FileNotFoundError):
                            os.unlink(each, dir_fd=directory)


# --- before-images and new contents -------------------------------------------------------------------------------


def prepare(record: Record, steps: Iterable[Step], effects: Sequence[Effect], *, share: bool) -> None:
    """Copy before-images, stage new contents, and store image and inode in the steps.

    `share`: true if sources may be hard-linked into slots, because nothing will write to them any more. Raises
    OSError (full disk), SandboxError.
    """
    with ExitStack() as opened, Walker() as targets, Walker() as staged, Walker() as images, Walker() as sources:
        for effect in effects:
            after = effect.after
            if after is not None and after.is_directory and not after.mode & 0o100 and os.geteuid() != 0:
                place = opened.enter_context(Walker()).place(_source(effect))
                opened.enter_context(with_rights(*place, after.mode, 0o700))
        # Not every file system can exchange two names, so this is tried with two directories of the record.
        exchanges = exchange(images.place(f"{record.place}/images"), staged.place(record.slots))
        for step in steps:
            before, after = step.before, step.after
            if before is not None and step.keeps and (before.links > 1 or not exchanges or is_beside(record, step)):
                _copy_image(step, before, targets.place(step.where), images.place(record.image(step)))
                step.image = True
            if after is not None and step.puts:
                effect = effects[step.number]
                source, slot = sources.place(_source(effect)), staged.place(text_of(step.slot))
                if not (share and _share(after, source, slot)):
                    step.after = after._replace(inode=_stage(effect, source, slot))


def _source(effect: Effect) -> str:
    """Return the resolved path of the new version. artoo's home may be behind a link, and links are not followed
    later."""
    relative = effect.relative
    return (_real(effect.source.removesuffix(relative)) + os.fsdecode(relative)).rstrip("/")


@lru_cache(maxsize=16)
def _real(directory: bytes) -> str:
    return os.path.join(os.fsdecode(os.path.realpath(directory)), "")


def _copy_image(step: Step, before: NodeState, target: Place, image: Place) -> None:
    """Copy the before-image. This is needed if a program may write to the file by another name, or if the slot may
    be lost."""
    try:
        copy(target, before, image)
    except PermissionError as error:
        if before.uid == os.geteuid():
            raise
        raise SandboxError(
            f"{step.path} belongs to another user ({before.uid}): no undo could restore it as it was, so"
            " nothing was changed; apply other paths by naming them, and change this one yourself"
        ) from error


def _share(after: NodeState, source: Place, slot: Place) -> bool:
    """Link the new version into its slot. Returns False if it must be copied.

    A link saves the time and space of a copy. It is possible only if the file has no attributes of overlayfs.
    """
    if after.node is not Node.FILE or after.xattrs or not link(source, slot):
        return False
    seen = os.stat(slot[1], dir_fd=slot[0], follow_symlinks=False)
    now = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_mode, seen.st_uid, seen.st_gid, seen.st_nlink)
    mode = stat.S_IFREG | after.mode
    approved = (after.inode, after.size, after.mtime_ns, mode, after.uid, after.gid, 2)
    if now == approved and not _has_attributes(slot):
        return True
    os.unlink(slot[1], dir_fd=slot[0])
    return False


def _has_attributes(place: Place) -> bool:
    """True if a file has attributes other than those that a security module sets on every file."""
    names = os.listxattr(at(*place), follow_symlinks=False) if hasattr(os, "listxattr") else ()
    return any(not one.startswith("security.") or one == "security.capability" for one in names)


def _stage(effect: Effect, source: Place, slot: Place) -> int:
    """Copy the new version into its slot, and return its inode there."""
    assert effect.after is not None
    try:
        with with_rights(*source, effect.after.mode, 0o400):
            return copy(source, effect.after, slot)
    except PermissionError as error:
        raise OSError(error.errno, "its owner or attributes cannot be set", effect.shown) from error


def to_sync_first(record: Record, steps: Iterable[Step]) -> list[str]:
    """Return the paths to sync before the first path is replaced: manifest, contents, images and their directories.

    If many files are in one directory, only enough of them are listed to make `sync` sync the whole file system.
    """
    files: dict[str, list[str]] = {f"{record.place}/images": [], record.slots: []}
    for step in steps:
        if step.puts:
            slot = text_of(step.slot)
            files.setdefault(holder_of(slot), []).append(slot)
        if step.image:
            files[f"{record.place}/images"].append(record.image(step))
    some = (path for directory, listed in files.items() for path in (directory, *listed[: SYNC_ONE_BY_ONE + 1]))
    return [
        *map(str, (record.place / MANIFEST, record.place / NOTE, record.place, *record.place.parents[:2])),
        *some,
    ]
