"""Checks an apply against the user's files as they are now, and makes everything ready that it needs.

Nothing that the user sees changes here: before-images are linked or copied into the record, new contents are copied
into slots. So a full disk fails before the first path is replaced.

A slot is on the file system of its target, so that a rename leads there: in the record, out of sight; or, if the
record is on another file system, a hidden file in the nearest directory above the target that exists and stays.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import lru_cache

from artoo.contracts.changes import Conflict, Node
from artoo.contracts.errors import SandboxError
from artoo.workspace.changes.effect import Effect
from artoo.workspace.commit.atomic_rename import Place
from artoo.workspace.commit.dirfd_ops import SYNC_ONE_BY_ONE, Walker, copy, digest_at, link, mount_of, same_version
from artoo.workspace.commit.execute import blocked
from artoo.workspace.commit.manifest import Manifest, Record, Step, printable, text_of
from artoo.workspace.fs.stat import NodeState, at, read_state, with_rights

PART = "~"
"""Ends the name of a slot whose content is being copied during a restore: half a copy never has a slot's name."""
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


def check(effects: Sequence[Effect]) -> tuple[list[Step], list[Conflict]]:
    """Compare the approved state of each path with the state now; return steps without contents, and conflicts.

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
            elif effect.before is not None or now is None:  # else it is a directory that the user has made too
                steps.append(_step(number, effect, now))
        reasons = {} if conflicts else blocked(steps, walker)
    return steps, conflicts + [Conflict(path=path, reason=reason) for path, reason in reasons.items()]


def _step(number: int, effect: Effect, now: NodeState | None) -> Step:
    after = effect.after
    stays = after is not None and after.is_directory and now is not None and now.is_directory
    in_place = effect.in_place or stays
    if in_place and now is not None and after is not None:
        mtime_ns = now.mtime_ns if stays else after.mtime_ns
        after = now._replace(mode=after.mode, uid=after.uid, gid=after.gid, xattrs=after.xattrs, mtime_ns=mtime_ns)
    return Step(
        number=number,
        path=effect.shown,
        before=now,
        after=after,
        in_place=in_place,
        before_sha256=effect.before_digest,
        after_sha256=effect.digest,
    )


def _conflict(effect: Effect, path: str, now: NodeState | None, walker: Walker) -> str | None:
    """Return why an effect must not happen any more; None if its path is as it was approved."""
    before = effect.before
    if before is None:
        makes_directory = effect.after is not None and effect.after.is_directory
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
    digest = None if effect.before_digest is None else digest_at(walker, path, now.size)
    same = same_version(now, before) if digest is None else digest == effect.before_digest
    return None if same else "it was changed meanwhile"


# --- slots --------------------------------------------------------------------------------------------------------


def with_slots(record: Record, steps: Iterable[Step]) -> list[Step]:
    """Choose a slot for each step that needs one, unless it has one that can be used. Raises OSError."""
    listed = list(steps)
    leaving = {step.where for step in listed if step.takes_away}
    token = secrets.token_hex(6)
    known: dict[str, str] = {}
    found: list[Step] = []
    (record.place / "new").mkdir(mode=0o700, exist_ok=True)
    with Walker() as own, Walker() as walker:
        home = mount_of(own.directory(f"{record.place}/new"))
        for step in listed:
            states = (step.before, step.after)
            needs = not step.in_place and any(state is not None and not state.is_directory for state in states)
            if not needs or (step.slot and walker.look(os.path.dirname(text_of(step.slot))) is not None):
                found.append(step)
                continue
            above = os.path.dirname(step.where)
            if above not in known:
                near, mount = _nearest(walker, above, leaving)
                known[above] = printable(f"{record.place}/new/" if mount == home else f"{near}/.artoo-{token}-")
            found.append(replace(step, slot=f"{known[above]}{step.number}"))
    return found


def _nearest(walker: Walker, path: str, leaving: Collection[str]) -> tuple[str, tuple[int, int]]:
    """Return the nearest directory from here upwards that exists, stays and can be written, and its mount.

    The search does not leave the mount: if none can be written there, it is the first, and the system says why.
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
        path = os.path.dirname(path)


def is_beside(record: Record, step: Step) -> bool:
    """True if the slot of a step lies next to its target."""
    return step.slot != "" and os.path.dirname(text_of(step.slot)) != f"{record.place}/new"


def clean_slots(record: Record, steps: Iterable[Step]) -> None:
    """Delete the slots of steps. May be repeated. Raises OSError."""
    with Walker() as walker:
        for step in steps:
            with suppress(FileNotFoundError, NotADirectoryError):
                directory, name = walker.place(text_of(step.slot))
                for each in (name + PART, name) if is_beside(record, step) else (name,):
                    with suppress(FileNotFoundError):
                        os.unlink(each, dir_fd=directory)


# --- before-images and new contents -------------------------------------------------------------------------------


def prepare(record: Record, steps: Iterable[Step], effects: Sequence[Effect], *, share: bool) -> list[Step]:
    """Keep before-images and stage new contents; return the steps with what is known then.

    `share`: sources may be hard-linked into slots, because nothing writes to them any more. Raises OSError (full
    disk), SandboxError.
    """
    made: list[Step] = []
    with ExitStack() as opened, Walker() as targets, Walker() as staged, Walker() as images, Walker() as sources:
        for effect in effects:
            after = effect.after
            if after is not None and after.is_directory and not after.mode & 0o100 and os.geteuid() != 0:
                place = opened.enter_context(Walker()).place(_source(effect))
                opened.enter_context(with_rights(*place, after.mode, 0o700))
        for step in steps:
            image = step.before is not None and not step.before.is_directory and not step.in_place
            if image:
                _keep_image(record, step, targets, images)
            after = step.after
            if after is not None and step.puts:
                effect = effects[step.number]
                source, slot = sources.place(_source(effect)), staged.place(text_of(step.slot))
                shared = _share(after, source, slot) if share else None
                after = after._replace(inode=shared or _stage(effect, source, slot))
            made.append(replace(step, image=image, after=after))
    return made


def _source(effect: Effect) -> str:
    """Return where the new version lies; artoo's home may be behind a link."""
    return (_real(effect.source.removesuffix(effect.relative)) + os.fsdecode(effect.relative)).rstrip("/")


@lru_cache(maxsize=16)
def _real(directory: bytes) -> str:
    return os.path.join(os.fsdecode(os.path.realpath(directory)), "")


def _keep_image(record: Record, step: Step, targets: Walker, images: Walker) -> None:
    """Keep what is at a path: by a hard link, because artoo replaces it by a rename and never writes into it.

    A file with other names is copied, because a program may write into it by one of these.
    """
    assert step.before is not None
    target, image = targets.place(step.where), images.place(record.image(step))
    if (step.before.node is not Node.FILE or step.before.links == 1) and link(target, image):
        return
    try:
        copy(target, step.before, image)
    except PermissionError as error:
        if step.before.uid == os.geteuid():
            raise
        raise SandboxError(
            f"{step.path} belongs to another user ({step.before.uid}): no undo could restore it as it was, so"
            " nothing was changed; apply other paths by naming them, and change this one yourself"
        ) from error


def _share(after: NodeState, source: Place, slot: Place) -> int | None:
    """Hard-link the new version into its slot and return its inode; None if it has to be copied.

    That saves the time and the room of a copy, but a file must not bring an attribute of overlayfs along.
    """
    if after.node is not Node.FILE or not link(source, slot):
        return None
    seen = read_state(*slot)
    approved = (after.size, after.mtime_ns, 2)
    same = seen is not None and seen.same_metadata(after) and (seen.size, seen.mtime_ns, seen.links) == approved
    if seen is not None and same and not _has_overlay_attributes(slot):
        return seen.inode
    os.unlink(slot[1], dir_fd=slot[0])
    return None


def _has_overlay_attributes(place: Place) -> bool:
    names = os.listxattr(at(*place), follow_symlinks=False) if hasattr(os, "listxattr") else ()
    return any(".overlay." in name for name in names)


def _stage(effect: Effect, source: Place, slot: Place) -> int:
    """Copy the new version into its slot; return its inode there."""
    assert effect.after is not None
    try:
        with with_rights(*source, effect.after.mode, 0o400):
            return copy(source, effect.after, slot)
    except PermissionError as error:
        raise OSError(error.errno, "its owner or attributes cannot be set", effect.shown) from error


def to_sync_first(record: Record, manifest: Manifest) -> Iterator[str]:
    """Yield what must be durable before the manifest counts: contents, images, all names.

    Of many files in one directory only as many as make `sync` sync their file system as a whole.
    """
    yield from map(str, (record.place, *record.place.parents[:2]))
    files: dict[str, list[str]] = {f"{record.place}/{name}": [] for name in ("images", "new")}
    for step in manifest.steps:
        slot = text_of(step.slot)
        if step.puts:
            files.setdefault(os.path.dirname(slot), []).append(slot)
        if step.image and step.before is not None and step.before.node is Node.FILE:
            files.setdefault(f"{record.place}/images", []).append(record.image(step))
    for directory, listed in files.items():
        yield from (directory, *listed[: SYNC_ONE_BY_ONE + 1])
