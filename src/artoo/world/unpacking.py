"""Lays a parcel over this machine's files: a view as if the task had worked here.

What the task found is held against what is here. Where it is the same, the base of the view is what is here, and
what comes has this machine's owners and modes, but for the bits that the task changed. Where it is not, the base is
what the task found: settling finds the conflict then, as with any view.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import BinaryIO

from pydantic import ValidationError

from artoo.contracts.changes import Node, path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.world.base import Base, append_base
from artoo.world.files import parent_of, set_metadata
from artoo.world.journal import StateRecord, record_bytes
from artoo.world.move import now_at
from artoo.world.nodes import NodeState, digest_file
from artoo.world.parcel import MOST_MANIFEST, Item, Known, Manifest, Where
from artoo.world.remove import remove_tree
from artoo.world.scan import DEEPEST
from artoo.world.stage import make_upper
from artoo.world.view_place import TRUNK, Footing, ViewPlace

_CHUNK = 1 << 20
_BROUGHT = "brought"
"""Marks a view that holds another machine's work, to be looked at: nothing is lost when it goes."""


def unpack(source: BinaryIO, place: ViewPlace, footing: Footing, *, to_look: bool = True) -> None:
    """Makes the view `place`, whose lock is held, what the parcel says; what was there goes. Blocking.

    Project and workspace of the footing are in what it covers. `to_look`: nobody goes on in it; it is marked so.
    Raises SandboxError for a parcel that cannot be read, or that leads out of its places, and OSError (disk full):
    there is no view then.
    """
    manifest = manifest_of(source)
    empty(place)
    laying = _Laying(place, footing)
    try:
        for item in manifest.items:
            try:
                laying.lay(item, source)
            except (NotADirectoryError, FileExistsError) as error:
                raise SandboxError(f"the parcel puts {item.path!r} below a file or a link: refused") from error
        laying.end(source)
        append_base(place.base_file(), laying.bases)
        if to_look:
            (place.base / _BROUGHT).touch(mode=0o600)
        place.make(footing.kind, footing.roots, footing.covered)
    except BaseException:
        empty(place)
        raise


def is_brought(place: ViewPlace) -> bool:
    """Whether a view was unpacked, and nobody has worked in it."""
    return place.exists and (place.base / _BROUGHT).exists()


def manifest_of(source: BinaryIO) -> Manifest:
    """The manifest, read from the beginning. Raises SandboxError."""
    line = source.readline(MOST_MANIFEST + 1)
    if not line.endswith(b"\n"):
        raise SandboxError("the parcel cannot be read: its first line has no end; it was not made by this artoo")
    try:
        return Manifest.model_validate_json(line)
    except ValidationError as error:
        raise SandboxError(f"the parcel cannot be read ({error}); is it of a newer artoo?") from error


def empty(place: ViewPlace) -> None:
    """Nothing is left of a view but its lock, which is held. Its record goes first, as in `ViewPlace.remove`."""
    (place.base / "view.json").unlink(missing_ok=True)
    for child in tuple(place.base.iterdir()) if place.base.is_dir() else ():
        if child.name != "lock":
            remove_tree(child)


@dataclass(slots=True)
class _Top:
    """One covered root, and the layer over it. Printable."""

    root: str
    upper: str


class _Laying:
    """The layers of one view while they are filled."""

    def __init__(self, place: ViewPlace, footing: Footing) -> None:
        self.bases: list[Base] = []
        self._undressed: list[tuple[_Top, str, StateRecord]] = []
        self._places: Mapping[Where, str] = {
            "project": printable_path(os.fsencode(footing.roots.project)),
            "workspace": printable_path(os.fsencode(footing.roots.workspace)),
        }
        self._tops: list[_Top] = []
        place.base.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number, root in enumerate(footing.covered):
            upper = place.upper(TRUNK, number)
            upper.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_upper(upper, root)
            self._tops.append(_Top(printable_path(os.fsencode(root)), printable_path(os.fsencode(upper))))

    def lay(self, item: Item, source: BinaryIO) -> None:
        """One path, in the order of the manifest. `source` stands at its content."""
        top, relative = self._top(item)
        real = now_at(top.root, relative)
        same = _is(real, item.was, top.root, relative)
        base = _base(f"{top.root}/{relative}", item.was, real, same=same)
        if base is not None:
            self.bases.append(base)
        if item.now is None:
            if not _is_gone_with_its_directory(top.root, relative):
                self._delete(top, relative)
            return
        self._make_way(top, relative)
        with parent_of(top.upper, relative) as (directory, name):
            _put(directory, name, item.now, source)
        alike = same or item.was is None or _is(real, item.now, top.root, relative)
        self._undressed.append((top, relative, _metadata(item, real if alike else None)))

    def end(self, source: BinaryIO) -> None:
        """Owners, modes and times, from within: a directory may be closed to its owner then."""
        if source.read(1):
            raise SandboxError("the parcel holds more than it says; it was not made by this artoo")
        for top, relative, record in reversed(self._undressed):
            with parent_of(top.upper, relative) as (directory, name):
                _dress(directory, name, record)

    def _top(self, item: Item) -> tuple[_Top, str]:
        parts = path_bytes(item.path).split(b"/")
        if any(part in (b"", b".", b"..") or b"\0" in part for part in parts):
            raise SandboxError(f"the parcel names {item.path!r}, which leads out of its place")
        path = f"{self._places[item.where]}/{item.path}"
        for top in self._tops:
            if path.startswith(f"{top.root}/"):
                relative = path.removeprefix(f"{top.root}/")
                if relative.count("/") > DEEPEST:  # nobody looks at a view below; and making a way is quadratic
                    raise SandboxError(f"{path[:80]}… nests deeper than {DEEPEST} directories: refused")
                return top, relative
        raise SandboxError(f"the parcel changes {path}, over which no view can be laid here")

    def _delete(self, top: _Top, relative: str) -> None:
        """Unless something above it is gone, or something else, already."""
        above = relative.split("/")[:-1]
        for end in range(1, len(above) + 1):
            state = now_at(top.upper, "/".join(above[:end]))
            if state is not None and not state.is_directory:
                return
        self._make_way(top, relative)
        with parent_of(top.upper, relative) as (directory, name):
            os.mknod(name, stat.S_IFCHR, 0, dir_fd=directory)

    def _make_way(self, top: _Top, relative: str) -> None:
        """The directories above a path, which look as they do here."""
        above = relative.split("/")[:-1]
        for end in range(1, len(above) + 1):
            inner = "/".join(above[:end])
            if now_at(top.upper, inner) is not None:
                continue
            like = now_at(top.root, inner)
            with parent_of(top.upper, inner) as (directory, name):
                os.mkdir(name, 0o755, dir_fd=directory)
                record = StateRecord.of(like)
                if record is not None and record.node is Node.DIRECTORY:
                    self._undressed.append((top, inner, record))


def _is_gone_with_its_directory(root: str, relative: str) -> bool:
    """Whether there is nothing to delete, nor a directory to delete it from: none may come by that."""
    above = relative.split("/")[:-1]
    for end in range(1, len(above) + 1):
        state = now_at(root, "/".join(above[:end]))
        if state is None or not state.is_directory:
            return state is None
    return False


def _is(real: NodeState | None, was: Known | None, root: str, relative: str) -> bool:
    """Whether here stands what the task found."""
    if real is None or was is None or real.node is not was.node:
        return False
    if real.node is Node.LINK:
        return printable_path(real.target) == was.target
    if real.node is not Node.FILE:
        return real.is_directory
    return was.sha256 is not None and _digest(root, relative) == was.sha256


def _digest(root: str, relative: str) -> str | None:
    with suppress(OSError), parent_of(root, relative) as (directory, name):
        return digest_file(directory, name)
    return None


def _base(path: str, was: Known | None, real: NodeState | None, *, same: bool) -> Base | None:
    """The base against which settling will find conflicts: what is here, or what the task found elsewhere."""
    if was is None:
        return None
    record = StateRecord.of(real) or _nobody(was)
    if same and real is not None:
        return Base(path=path, was=record, changed_ns=real.ctime_ns, sha256=was.sha256)
    record = replace(record, node=was.node, size=was.size, target=was.target)
    return Base(path=path, was=record, changed_ns=0, sha256=was.sha256)


def _nobody(known: Known) -> StateRecord:
    """A thing of another machine as one of ours."""
    return StateRecord(
        node=known.node,
        mode=known.mode,
        uid=os.geteuid(),
        gid=os.getegid(),
        size=known.size,
        mtime_ns=known.mtime_ns,
        inode=0,
        device=0,
        links=1,
        rdev=0,
        target=known.target,
    )


def _metadata(item: Item, alike: NodeState | None) -> StateRecord:
    """How the new version looks here: as what it replaces, but for the bits of its mode that the task changed."""
    now = item.now
    assert now is not None
    found = StateRecord.of(alike)
    if found is None or found.node is not now.node:
        return _nobody(now)
    changed = 0 if item.was is None else item.was.mode ^ now.mode
    mode = (found.mode & ~changed) | (now.mode & changed)
    mtime = found.mtime_ns if now.node is Node.DIRECTORY else now.mtime_ns
    return replace(found, mode=mode, mtime_ns=mtime)


def _put(directory: int, name: str, now: Known, source: BinaryIO) -> None:
    if now.node is Node.DIRECTORY:
        with suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=directory)
    elif now.node is Node.LINK:
        target = record_bytes(now.target)
        if not target or "\0" in target:
            raise SandboxError(f"the parcel makes a link to {now.target!r}, which is no path")
        os.symlink(target, name, dir_fd=directory)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(name, flags, 0o600, dir_fd=directory), "wb") as file:
            left = now.size
            while left and (piece := source.read(min(left, _CHUNK))):
                file.write(piece)
                left -= len(piece)
        if left:
            raise SandboxError("the parcel holds less than it says; it was not sent whole")


def _dress(directory: int, name: str, record: StateRecord) -> None:
    """Owner, mode, attributes, time. What belongs to somebody else becomes ours where we may not give it away."""
    times = record.node is not Node.LINK
    try:
        set_metadata(directory, name, record, times=times)
    except PermissionError:
        set_metadata(directory, name, replace(record, uid=os.geteuid(), gid=os.getegid()), times=times)
