"""Gets an act ready: checks that nobody changed its paths, and that all of it can be exchanged with what is there.

A file of a layer on the file system of its target is exchanged as it is, and what comes out is the before-image:
then nothing has to be made ahead. Elsewhere what is there is kept, and the content brought beside the journal.
"""

from __future__ import annotations

import errno
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from artoo.contracts.changes import Conflict, Node, printable_path
from artoo.contracts.errors import SandboxError
from artoo.world.exchange import can_exchange
from artoo.world.files import (
    SYNC_ONE_BY_ONE,
    Reach,
    copy_node,
    keep_image,
    linked,
    make_durable,
    parent_of,
    strip_overlay_attributes,
)
from artoo.world.journal import Record, StateRecord, Step, record_bytes
from artoo.world.mounts import MountTable
from artoo.world.move import now_at, seen_at
from artoo.world.nodes import NodeState, open_directory, read_state
from artoo.world.scan import Effect
from artoo.world.stage import Layer
from artoo.world.unlocked import directories_above, is_locked

_LONGEST_PATH = os.pathconf("/", "PC_PATH_MAX") - 1
"""Bytes."""


def conflicts_of(effects: Sequence[Effect]) -> list[Conflict]:
    """Paths that are not as they were when the effects were read. Raises OSError."""
    found: list[Conflict] = []
    going = _children_going(effects)
    with Reach() as reach:
        for effect in effects:
            try:
                reason = _conflict(effect, going, reach)
            except OSError as error:  # of a name below a descriptor
                raise OSError(error.errno, error.strerror, effect.shown) from error
            if reason is not None:
                found.append(Conflict(path=effect.shown, reason=reason))
    return found


def _children_going(effects: Iterable[Effect]) -> dict[bytes, set[bytes]]:
    """For each directory, the names in it that this act removes."""
    going: dict[bytes, set[bytes]] = defaultdict(set)
    for effect in effects:
        if effect.before is not None and (effect.after is None or effect.before.node is not effect.after.node):
            parent, _, name = effect.path.rpartition(b"/")
            going[parent].add(name)
    return going


def _conflict(effect: Effect, going: dict[bytes, set[bytes]], reach: Reach) -> str | None:
    before = effect.before
    now = seen_at(reach, *effect.place)
    if before is None:
        both_directories = now is not None and now.is_directory and effect.after is not None
        if both_directories and effect.after is not None and effect.after.is_directory:
            return None
        return None if now is None else "it appeared meanwhile"
    if now is None:
        return "it is gone, or a directory above it was replaced"
    if not before.is_directory:
        return None if _untouched(before, now) else "it was changed meanwhile"
    if not now.is_directory or (now.inode, now.device) != (before.inode, before.device):
        return "the directory was replaced meanwhile"
    whole = now_at(*effect.place)
    if whole is None or not whole.same_metadata(before):
        return "its mode or owner was changed meanwhile"
    goes = effect.after is None or not effect.after.is_directory
    return _added_inside(effect, going[effect.path]) if goes else None


def _untouched(before: NodeState, now: NodeState) -> bool:
    same = (before.node, before.inode, before.device, before.size, before.mtime_ns, before.ctime_ns)
    return same == (now.node, now.inode, now.device, now.size, now.mtime_ns, now.ctime_ns)


def _added_inside(effect: Effect, going: set[bytes]) -> str | None:
    with parent_of(*effect.place) as (directory, name):
        inside = open_directory(directory, name)
        try:
            staying = sorted({os.fsencode(child) for child in os.listdir(inside)} - going)
        finally:
            os.close(inside)
    return f"it would be deleted, but holds {printable_path(staying[0])}" if staying else None


class _Way(NamedTuple):
    """How contents of a layer get to their targets: its upper directory, as a printable path, whether its files
    themselves can go, where they lie when they do, and how many bytes their names below it can have then."""

    upper: str
    lends: bool
    lies: str
    longest: int

    @property
    def swaps(self) -> bool:
        """Whether the act takes the layer with it: then what comes out of an exchange stays in it."""
        return self.lies != self.upper


class Preparation:
    """Builds the steps of one act. Nothing that the user can see changes, landing directories aside.

    The layers stay as they are until the act is carried out. It takes the `trunk` with it where that can be: a
    directory of layers that hold nothing else.
    """

    def __init__(self, record: Record, effects: Sequence[Effect], trunk: Path | None = None) -> None:
        self._record = record
        self._effects = effects
        self._mounts = MountTable.read()
        self._landings: dict[Path, Path] = {}
        self._contents: dict[str, dict[str, None]] = defaultdict(dict)
        self._ways: dict[Path, _Way] = {}
        self._twins: dict[tuple[int, int], str] = {}
        others = (one.after for one in effects if one.after is not None and one.after.links > 1)
        self._going = Counter((after.device, after.inode) for after in others)
        self.taken = trunk if trunk is not None and self._can_be_taken(trunk) else None

    def steps(self) -> list[Step]:
        """All steps. Raises OSError (disk full, no permission)."""
        with Reach() as real, Reach() as layers:
            steps = (self._step(number, effect, real, layers) for number, effect in enumerate(self._effects))
            made = [step for step in steps if step is not None]
        return [*made, *self._locked_directories(made)]

    def make_durable(self, others: Iterable[Path]) -> None:
        """Contents and before-images, and `others`: files and directories."""
        make_durable(chain(self._opened_contents(), self._opened(others)))

    def _opened_contents(self) -> Iterator[int]:
        """Of many on one file system as many as make it be synced as a whole."""
        for contents in self._contents.values():
            yield from islice(self._opened(contents), SYNC_ONE_BY_ONE + 1)

    def _opened(self, paths: Iterable[str | Path]) -> Iterator[int]:
        for path in paths:
            try:
                yield os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EACCES):  # a link, a socket, or unreadable
                    raise

    def _keep(self, effect: Effect, place: tuple[int, str], before: StateRecord, image: str) -> int:
        """Keeps what is there now; the inode of the image."""
        try:
            return keep_image(*place, before, image)
        except PermissionError as error:
            if before.uid == os.geteuid():
                raise
            raise SandboxError(
                f"{effect.shown} belongs to somebody else (user {before.uid}): no undo could bring it back as it"
                " was, so nothing was changed; apply other paths by naming them, and change this one yourself"
            ) from error

    def _step(self, number: int, effect: Effect, real: Reach, layers: Reach) -> Step | None:
        root, relative = effect.place
        before = StateRecord.of(effect.before)
        new_directory = before is None and effect.after is not None and effect.after.is_directory
        if new_directory and seen_at(real, root, relative) is not None:  # made by somebody else meanwhile
            return None
        brings = effect.after is not None and not effect.after.is_directory and not effect.in_place
        lent = self._lent(effect, layers) if brings else None
        image_inode, swaps = None, False
        if before is not None and before.node is not Node.DIRECTORY and not effect.in_place:
            if lent is not None and _can_be_the_image(before):
                image_inode, swaps = before.inode, self._way(effect.layer).swaps
                if not swaps:
                    self._record.images.make_room(number)
            else:
                image = self._record.images.make_room(number)
                image_inode = self._keep(effect, real.parent(root, relative), before, image)
                if not _can_be_the_image(before):
                    linked(*real.parent(root, relative), self._record.images.make_room_for_name(number))
        source, after = lent, effect.after
        if brings and lent is None:
            source, after = self._brought(number, effect, layers)
        if effect.in_place and effect.before is not None and after is not None:
            after = after._replace(inode=effect.before.inode, device=effect.before.device)
        return Step(
            root=root,
            relative=relative,
            before=before,
            after=StateRecord.of(after),
            in_place=effect.in_place,
            source=source,
            image=None if image_inode is None or swaps else number,
            image_inode=image_inode,
            before_sha256=effect.before_digest,
            after_sha256=effect.digest,
            lent=lent is not None,
        )

    def _lent(self, effect: Effect, layers: Reach) -> str | None:
        """Where the layer's own file lies in the act, as a printable path, if it can go to its target itself."""
        way = self._way(effect.layer)
        relative = effect.place[1]
        directory, name = layers.parent(way.upper, relative)
        if not way.lends or self._leaves_a_name(effect) or not _can_be_lent(effect, directory):
            return None
        if len(effect.relative) > way.longest:  # its directory can be entered, and a short name brings it
            return None
        if not effect.unmarked:
            strip_overlay_attributes(directory, name, effect.layer.notes)
        self._must_last(way.upper, record_bytes(f"{way.upper}/{relative}"))
        return f"{way.lies}/{relative}"

    def _leaves_a_name(self, effect: Effect) -> bool:
        """Whether another name stays in the layer: who writes there must not reach the person's file."""
        after = effect.after
        if after is None or after.links == 1:
            return False
        return after.links > self._going[after.device, after.inode]

    def _must_last(self, group: str, content: str) -> None:
        """Content and name are to be durable before the act is. What is in a group lies on one file system."""
        self._contents[group] |= {os.path.dirname(content): None, content: None}

    def _brought(self, number: int, effect: Effect, layers: Reach) -> tuple[str, NodeState]:
        """The content beside the journal, or in the root on another file system, and its state there."""
        assert effect.after is not None
        directory, name = layers.parent(self._way(effect.layer).upper, effect.place[1])
        landing = os.fspath(self._landing(effect.layer.root))
        landed = f"{landing}/{number}"
        self._must_last(landing, landed)
        state: NodeState | None = effect.after
        if not self._leaves_a_name(effect) and linked(directory, name, landed):
            if not effect.unmarked:
                strip_overlay_attributes(directory, name, effect.layer.notes)
        else:
            self._copy(directory, name, effect.after, landed, effect.layer.notes)
            with parent_of(printable_path(os.fsencode(landing)), str(number)) as there:
                state = read_state(*there)
        assert state is not None
        return printable_path(os.fsencode(landed)), state

    def _copy(self, directory: int, name: str, state: NodeState, landed: str, notes: Path) -> None:
        """A copy of a content; names that the task linked with each other stay linked."""
        twin = self._twins.setdefault((state.device, state.inode), landed)
        if twin != landed and os.path.dirname(twin) == os.path.dirname(landed):
            os.link(twin, landed, follow_symlinks=False)
            return
        record = StateRecord.of(state)
        assert record is not None
        copy_node(directory, name, record, Path(landed), durable=False, notes=notes)

    def _can_be_taken(self, trunk: Path) -> bool:
        """Whether its files can change places with those in its roots, wherever these are."""
        layers = {effect.layer.upper: effect.layer.root for effect in self._effects}
        roots = (root for upper, root in layers.items() if upper.is_relative_to(trunk))
        if not self._same_mount(trunk, self._record.place) or any(map(self._mounts.below, map(os.fsencode, roots))):
            return False
        return can_exchange(self._record.place) and self._reaches_roots()

    def _reaches_roots(self) -> bool:
        """Whether the system brings a name from the roots here: other quotas or keys forbid it on one mount, too.
        It is tried with one file of each, as no table tells it."""
        name = f"{self._record.place}/reached"
        replaced = (effect for effect in self._effects if effect.before and effect.before.node is Node.FILE)
        for upper, effect in {effect.layer.upper: effect for effect in replaced}.items():
            if not self._same_mount(upper, effect.layer.root):  # its contents are copied anyway
                continue
            with parent_of(*effect.place) as place:
                if not linked(*place, name):
                    return False
            os.unlink(name)
        return True

    def _same_mount(self, one: Path, other: Path) -> bool:
        """Whether a rename between two directories can work."""
        if one.stat().st_dev != other.stat().st_dev:
            return False
        return self._mounts.of(os.fsencode(one)) == self._mounts.of(os.fsencode(other))

    def _way(self, layer: Layer) -> _Way:
        if layer.upper not in self._ways:
            lends = self._same_mount(layer.upper, layer.root) and self._same_mount(layer.upper, self._record.place)
            lies = layer.upper
            if self.taken is not None and lies.is_relative_to(self.taken):
                lies = self._record.layer.relative_to(self._record.place) / lies.relative_to(self.taken)
            tops = (layer.upper, self._record.place / lies)
            longest = _LONGEST_PATH - max(len(os.fsencode(top)) + 1 for top in tops)
            self._ways[layer.upper] = _Way(_printable(layer.upper), lends, _printable(lies), longest)
        return self._ways[layer.upper]

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
        for root, relative in sorted(directories_above(steps) - known) if os.geteuid() != 0 else ():
            now = now_at(root, relative)
            if is_locked(now):
                state = StateRecord.of(now)
                yield Step(root=root, relative=relative, before=state, after=state, in_place=True)


def _can_be_lent(effect: Effect, directory: int) -> bool:
    """Whether the layer's own file can be moved from the open `directory` to its target, and back."""
    before, after = effect.before, effect.after
    if before is not None and after is not None and before.device != after.device:  # another volume of one mount
        return False
    if os.geteuid() == 0:
        return True
    mine = before is None or before.uid == os.geteuid()  # what is somebody else's has to stay where it is
    return mine and os.fstat(directory).st_mode & 0o300 == 0o300


def _printable(path: Path) -> str:
    return printable_path(os.fsencode(path))


def _can_be_the_image(before: StateRecord) -> bool:
    """Whether the thing itself can be kept: no other name leads to what it holds."""
    return before.node is not Node.FILE or before.links == 1


def tidy_landings(record: Record) -> None:
    """Of an act that is done: it took effect whatever becomes of them, and what cannot go now goes at a start."""
    with suppress(OSError):
        remove_landings(record.landings())


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
