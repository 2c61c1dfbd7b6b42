"""Gets an act ready: checks that nobody changed its paths, keeps what is there, and lays the new content down."""

from __future__ import annotations

import errno
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from artoo.contracts.changes import Conflict, Node, printable_path
from artoo.contracts.errors import SandboxError
from artoo.world.began import Meanwhile
from artoo.world.converge import ancestors, is_locked, now_at
from artoo.world.files import (
    copy_node,
    keep_image,
    parent_of,
    strip_overlay_attributes,
    sync_file_system,
)
from artoo.world.journal import Record, StateRecord, Step, record_bytes, sync_directory
from artoo.world.mounts import MountTable
from artoo.world.nodes import NodeState, open_directory, read_state
from artoo.world.scan import Effect

_SYNC_ONE_BY_ONE = 64


def conflicts_of(effects: Sequence[Effect], meanwhile: Meanwhile | None = None) -> list[Conflict]:
    """Paths that are not as they were seen. `meanwhile`: while a command ran that saw them before that."""
    found: list[Conflict] = []
    going = _children_going(effects)
    for effect in effects:
        reason = _conflict(effect, meanwhile, going)
        if reason is not None:
            found.append(Conflict(path=printable_path(effect.path), reason=reason))
    return found


def _children_going(effects: Iterable[Effect]) -> dict[bytes, set[bytes]]:
    """For each directory, the names in it that this act removes."""
    going: dict[bytes, set[bytes]] = defaultdict(set)
    for effect in effects:
        if effect.before is not None and (effect.after is None or effect.before.node is not effect.after.node):
            parent, _, name = effect.path.rpartition(b"/")
            going[parent].add(name)
    return going


def _conflict(effect: Effect, meanwhile: Meanwhile | None, going: dict[bytes, set[bytes]]) -> str | None:
    before = effect.before
    now = now_at(*_place(effect))
    if before is None:
        both_directories = now is not None and now.is_directory and effect.after is not None
        if both_directories and effect.after is not None and effect.after.is_directory:
            return None
        return None if now is None else "it appeared while the command ran"
    if now is None:
        return "it is gone, or a directory above it was replaced"
    if not before.is_directory:
        if meanwhile is not None and before.ctime_ns in meanwhile:
            return "it was changed while the command ran"
        return None if _untouched(before, now) else "it was changed since the command ran"
    if not now.is_directory or (now.inode, now.device) != (before.inode, before.device):
        return "the directory was replaced since the command ran"
    if not now.same_metadata(before):
        return "its mode or owner was changed since the command ran"
    goes = effect.after is None or not effect.after.is_directory
    return _added_inside(effect, going[effect.path]) if goes else None


def _untouched(before: NodeState, now: NodeState) -> bool:
    same = (before.node, before.inode, before.device, before.size, before.mtime_ns, before.ctime_ns)
    return same == (now.node, now.inode, now.device, now.size, now.mtime_ns, now.ctime_ns)


def _added_inside(effect: Effect, going: set[bytes]) -> str | None:
    with parent_of(*_place(effect)) as (directory, name):
        inside = open_directory(directory, name)
        try:
            staying = sorted({os.fsencode(child) for child in os.listdir(inside)} - going)
        finally:
            os.close(inside)
    return f"it would be deleted, but holds {printable_path(staying[0])}" if staying else None


def _place(effect: Effect) -> tuple[str, str]:
    return printable_path(os.fsencode(effect.layer.root)), printable_path(effect.relative)


class Preparation:
    """Builds the steps of one act. Nothing that the user can see changes, landing directories aside."""

    def __init__(self, record: Record, effects: Sequence[Effect], *, keep_layers: bool = False) -> None:
        """`keep_layers`: the layers stay as they are, so that a failed act can be tried again from them."""
        self._record = record
        self._effects = effects
        self._keep_layers = keep_layers
        self._mounts = MountTable.read()
        self._landings: dict[Path, Path] = {}
        self._sources: list[str] = []
        self._twins: dict[tuple[int, int], Path] = {}

    def steps(self) -> list[Step]:
        """All steps, contents and before-images durable. Raises OSError (disk full, no permission)."""
        made = [step for number, effect in enumerate(self._effects) if (step := self._step(number, effect))]
        made += self._locked_directories(made)
        self._sync_sources()
        for place in self._landings.values():
            sync_directory(place)
        return made

    def _step(self, number: int, effect: Effect) -> Step | None:
        root, relative = _place(effect)
        before = StateRecord.of(effect.before)
        new_directory = before is None and effect.after is not None and effect.after.is_directory
        if new_directory and now_at(root, relative) is not None:  # made by somebody else meanwhile
            return None
        image = self._image(number, effect) if effect.before is not None and not effect.in_place else None
        source, after = None, effect.after
        if after is not None and not after.is_directory and not effect.in_place:
            source, after = self._source(number, effect)
        if effect.in_place and effect.before is not None and after is not None:
            after = replace(after, inode=effect.before.inode, device=effect.before.device)
        return Step(
            root=root,
            relative=relative,
            before=before,
            after=StateRecord.of(after),
            in_place=effect.in_place,
            source=source,
            image=image,
            image_inode=self._record.image(image).lstat().st_ino if image is not None else None,
            before_sha256=effect.before_digest,
            after_sha256=effect.digest,
        )

    def _image(self, number: int, effect: Effect) -> int | None:
        before = StateRecord.of(effect.before)
        if before is None or before.node is Node.DIRECTORY:
            return None
        with parent_of(*_place(effect)) as (directory, name):
            keep_image(directory, name, before, self._record.image(number))
        return number

    def _source(self, number: int, effect: Effect) -> tuple[str, NodeState]:
        """Where the new content lies, on the file system of its target, and its state there."""
        assert effect.after is not None
        upper = printable_path(os.fsencode(effect.layer.upper))
        staged = os.fsencode(effect.layer.upper) + b"/" + effect.relative
        with parent_of(upper, printable_path(effect.relative)) as (directory, name):
            if self._same_mount(effect.layer.upper, effect.layer.root) and not self._keep_layers:
                strip_overlay_attributes(directory, name)
                self._sources.append(os.fsdecode(staged))
                return printable_path(staged), effect.after
            landed = self._landing(effect.layer.root) / str(number)
            if self._keep_layers and self._linked(directory, name, landed):
                self._sources.append(str(landed))
            else:
                self._copy(directory, name, effect.after, landed)
        with parent_of(printable_path(os.fsencode(landed.parent)), landed.name) as (directory, name):
            state = read_state(directory, name)
        assert state is not None
        return printable_path(os.fsencode(landed)), state

    def _copy(self, directory: int, name: str, state: NodeState, landed: Path) -> None:
        """A copy of a staged content; names that the command linked with each other stay linked."""
        twin = self._twins.setdefault((state.device, state.inode), landed)
        if twin is not landed and twin.parent == landed.parent:
            os.link(twin, landed, follow_symlinks=False)
            return
        record = StateRecord.of(state)
        assert record is not None
        copy_node(directory, name, record, landed)

    def _linked(self, directory: int, name: str, landed: Path) -> bool:
        """Whether the content lies at `landed` too now, as the same file: nothing is written for it."""
        try:
            os.link(name, landed, src_dir_fd=directory, follow_symlinks=False)
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EACCES):
                return False
            raise
        with parent_of(printable_path(os.fsencode(landed.parent)), landed.name) as (place, linked):
            strip_overlay_attributes(place, linked)
        return True

    def _same_mount(self, one: Path, other: Path) -> bool:
        """Whether a rename between two directories can work."""
        if one.stat().st_dev != other.stat().st_dev:
            return False
        return self._mounts.of(os.fsencode(one)) == self._mounts.of(os.fsencode(other))

    def _landing(self, root: Path) -> Path:
        """Where contents are copied before the act: with the journal, or, on another file system, in the root."""
        if root not in self._landings:
            self._landings[root] = self._make_landing(root)
        return self._landings[root]

    def _make_landing(self, root: Path) -> Path:
        if self._same_mount(self._record.place, root):
            return self._record.make_new()
        place = root / f".artoo-landing-{self._record.place.name[-12:]}"
        self._record.announce_landing(printable_path(os.fsencode(place)))
        place.mkdir(mode=0o700)
        return place

    def _locked_directories(self, steps: Sequence[Step]) -> Iterator[Step]:
        """Directories whose mode must be opened for this act and closed again."""
        known = {(step.root, step.relative) for step in steps}
        above = {(step.root, ancestor) for step in steps for ancestor in ancestors(step.relative)}
        for root, relative in sorted(above - known):
            now = now_at(root, relative)
            if is_locked(now):
                state = StateRecord.of(now)
                yield Step(root=root, relative=relative, before=state, after=state, in_place=True)

    def _sync_sources(self) -> None:
        """Makes staged contents durable: file by file, or the whole file system when they are many."""
        if len(self._sources) > _SYNC_ONE_BY_ONE:
            sync_file_system(self._record.place)
            return
        for path in self._sources:
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENXIO, errno.EACCES):  # a link, a socket, or unreadable
                    continue
                raise
            try:
                os.fsync(descriptor)
            except OSError as error:
                if error.errno != errno.EINVAL:  # a pipe has nothing to sync
                    raise
            finally:
                os.close(descriptor)


def remove_landings(leftovers: Iterable[str]) -> None:
    """Removes landing directories; ours by name, and empty of anything that matters by then."""
    for printable in leftovers:
        place = Path(record_bytes(printable))
        if not place.name.startswith(".artoo-landing-"):
            raise SandboxError(f"{printable} is not a landing directory of artoo: left alone")
        if place.is_symlink() or not place.is_dir():
            continue
        for child in place.iterdir():
            child.unlink()
        place.rmdir()
