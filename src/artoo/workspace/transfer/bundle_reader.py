"""Lay a bundle over this machine's files: a workspace as if the task had worked here.

What the task found is compared with what is here. If they are the same, the base of the workspace is what is here,
and what arrives gets this machine's owners and modes, except for the mode bits that the task changed. If not, the
base is what the task found, and settlement finds the conflict as with any workspace.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from artoo.contracts.changes import Node, path_bytes, printable_path
from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.workspace.changes.base import Base, append_base
from artoo.workspace.directory import WorkspaceDirectory
from artoo.workspace.files.beneath import open_parent
from artoo.workspace.files.rooted import locate_real
from artoo.workspace.fs.stat import NodeState, digest_file, read_state
from artoo.workspace.transfer.bundle import MOST_MANIFEST, Item, Known, Manifest, Where

_CHUNK = 1 << 20
_DEEPEST = 128
"""Directories below each other: no one writes more, and making them one by one is quadratic."""
_BROUGHT = "brought"
"""A file that marks a workspace with another machine's work that is only reviewed: nothing is lost if it goes."""


def unpack(
    source: BinaryIO,
    directory: WorkspaceDirectory,
    roots: Roots,
    covered: tuple[Path, ...],
    *,
    to_look: bool = True,
) -> None:
    """Make the workspace what the bundle says; what was there is deleted. The caller holds its lock. Blocking.

    `covered` are the real directories that get an upper directory; project and output folder are in them.
    `to_look`: no task goes on in it; it is marked so. Raises SandboxError for a bundle that cannot be read, or that
    leads out of its places, and OSError (full disk); there is no workspace then.
    """
    manifest = _manifest_of(source)
    _empty(directory)
    laying = _Laying(directory, roots, covered)
    try:
        for item in manifest.items:
            laying.lay(item, source)
        laying.end(source)
        append_base(directory.base_file, laying.bases)
        if to_look:
            (directory.base / _BROUGHT).touch(mode=0o600)
        directory.make("bubblewrap", roots, covered)
    except BaseException:
        _empty(directory)
        raise


def is_brought(directory: WorkspaceDirectory) -> bool:
    """True if a workspace was unpacked for a review, and no task has worked in it."""
    return directory.exists and (directory.base / _BROUGHT).exists()


def _manifest_of(source: BinaryIO) -> Manifest:
    line = source.readline(MOST_MANIFEST + 1)
    if not line.endswith(b"\n"):
        raise SandboxError("the bundle cannot be read: its first line has no end; it was not made by this artoo")
    try:
        return Manifest.model_validate_json(line)
    except ValidationError as error:
        raise SandboxError(f"the bundle cannot be read ({error}); was it made by a newer artoo?") from error


def _empty(directory: WorkspaceDirectory) -> None:
    """Delete everything of a workspace but its lock, which is held; its record goes first."""
    (directory.base / "workspace.json").unlink(missing_ok=True)
    directory.base.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.remove_rest()


@dataclass(frozen=True, slots=True)
class _Top:
    """One covered directory, and the upper directory over it."""

    root: bytes
    upper: bytes


class _Laying:
    """The upper directories of one workspace while they are filled. No process but this one is in them."""

    def __init__(self, directory: WorkspaceDirectory, roots: Roots, covered: tuple[Path, ...]) -> None:
        self.bases: list[Base] = []
        self._undressed: list[tuple[bytes, NodeState]] = []
        self._places: dict[Where, bytes] = {
            "project": os.fsencode(roots.project),
            "workspace": os.fsencode(roots.workspace),
        }
        self._tops: list[_Top] = []
        for number, root in enumerate(map(os.fsencode, covered)):
            upper = directory.upper(number)
            upper.mkdir(mode=0o700, parents=True)
            directory.work(number).mkdir(mode=0o700)
            # The overlay shows the upper directory's own mode and owner as those of the root.
            state = _here(root)
            if state is not None:
                _dress(os.fsencode(upper), state)
            self._tops.append(_Top(root, os.fsencode(upper)))

    def lay(self, item: Item, source: BinaryIO) -> None:
        """Lay down one path, in the order of the manifest. `source` is at its content. Raises SandboxError."""
        top, path, inner = self._find(item)
        real = _here(path)
        same = _is(real, item.was, path)
        base = _base(path, item.was, real, same=same)
        if base is not None:
            self.bases.append(base)
        if item.now is None:
            if not self._is_gone_already(top, path):
                self._make_parents(top, path)
                os.mknod(inner, stat.S_IFCHR)  # a whiteout
            return
        self._make_parents(top, path)
        _put(inner, item.now, source)
        alike = same or item.was is None or _is(real, item.now, path)
        self._undressed.append((inner, _metadata(item, real if alike else None)))

    def end(self, source: BinaryIO) -> None:
        """Set owners, modes and times, deepest first: a directory may be read-only then. Raises SandboxError."""
        if source.read(1):
            raise SandboxError("the bundle holds more than it says; it was not made by this artoo")
        for inner, state in reversed(self._undressed):
            _dress(inner, state)

    def _find(self, item: Item) -> tuple[_Top, bytes, bytes]:
        relative = path_bytes(item.path)
        parts = relative.split(b"/")
        if any(part in (b"", b".", b"..") or b"\0" in part for part in parts):
            raise SandboxError(f"the bundle names {item.path!r}, which leads out of its place")
        if len(parts) > _DEEPEST:
            raise SandboxError(f"{item.path[:80]}… nests deeper than {_DEEPEST} directories: refused")
        path = self._places[item.where] + b"/" + relative
        for top in self._tops:
            if path.startswith(top.root + b"/"):
                return top, path, top.upper + path.removeprefix(top.root)
        raise SandboxError(f"the bundle changes {printable_path(path)}, which no workspace covers here")

    def _is_gone_already(self, top: _Top, path: bytes) -> bool:
        """True if a directory above is deleted, replaced or not there: then there is nothing to delete."""
        for above in _above(top, path):
            inner = _lstat(top.upper + above.removeprefix(top.root))
            if inner is not None and not stat.S_ISDIR(inner.st_mode):
                return True
            state = _here(above)
            if inner is None and (state is None or not state.is_directory):
                return state is None
        return False

    def _make_parents(self, top: _Top, path: bytes) -> None:
        """Make the directories above a path, which get the metadata that they have here. Raises SandboxError."""
        for above in _above(top, path):
            inner = top.upper + above.removeprefix(top.root)
            found = _lstat(inner)
            if found is None:
                os.mkdir(inner, 0o755)
                like = _here(above)
                if like is not None and like.is_directory:
                    self._undressed.append((inner, like))
            elif not stat.S_ISDIR(found.st_mode):
                raise SandboxError(f"the bundle puts {printable_path(path)} below a file or a link: refused")


def _above(top: _Top, path: bytes) -> list[bytes]:
    """Return the directories between the root and a path, outermost first."""
    parts = path.removeprefix(top.root + b"/").split(b"/")[:-1]
    return [top.root + b"/" + b"/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _lstat(path: bytes) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.lstat(path)
    return None


def _here(path: bytes) -> NodeState | None:
    """Return what this machine has at a path."""
    try:
        parent, name = open_parent(*locate_real(os.fsdecode(path)))
    except OSError:
        return None
    try:
        return read_state(parent, name)
    finally:
        os.close(parent)


def _digest(path: bytes) -> str | None:
    with suppress(OSError):
        parent, name = open_parent(*locate_real(os.fsdecode(path)))
        try:
            return digest_file(parent, name)
        finally:
            os.close(parent)
    return None


def _is(real: NodeState | None, was: Known | None, path: bytes) -> bool:
    """True if what is here is what the task found."""
    if real is None or was is None or real.node is not was.node:
        return False
    if real.node is Node.LINK:
        return printable_path(real.target) == was.target
    if real.node is not Node.FILE:
        return real.is_directory
    return was.sha256 is not None and _digest(path) == was.sha256


def _base(path: bytes, was: Known | None, real: NodeState | None, *, same: bool) -> Base | None:
    if was is None:
        return None
    shown = printable_path(path)
    if same and real is not None:
        return Base(path=shown, was=real, sha256=was.sha256)
    found = (real or _ours(was))._replace(node=was.node, size=was.size, target=path_bytes(was.target), inode=0)
    return Base(path=shown, was=found, sha256=was.sha256)


def _ours(known: Known) -> NodeState:
    """Return a thing of another machine as one of this user's."""
    return NodeState(
        known.node,
        known.mode,
        os.geteuid(),
        os.getegid(),
        size=known.size,
        mtime_ns=known.mtime_ns,
        target=path_bytes(known.target),
    )


def _metadata(item: Item, alike: NodeState | None) -> NodeState:
    """Return the new version's metadata: of what it replaces, with the mode bits that the task changed."""
    now = item.now
    assert now is not None
    if alike is None or alike.node is not now.node:
        return _ours(now)
    changed = 0 if item.was is None else item.was.mode ^ now.mode
    mode = (alike.mode & ~changed) | (now.mode & changed)
    return alike._replace(mode=mode, mtime_ns=alike.mtime_ns if now.node is Node.DIRECTORY else now.mtime_ns)


def _put(inner: bytes, now: Known, source: BinaryIO) -> None:
    if now.node is Node.DIRECTORY:
        with suppress(FileExistsError):
            os.mkdir(inner, 0o755)
    elif now.node is Node.LINK:
        target = path_bytes(now.target)
        if not target or b"\0" in target:
            raise SandboxError(f"the bundle makes a link to {now.target!r}, which is no path")
        os.symlink(target, inner)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(inner, flags, 0o600), "wb") as file:
            left = now.size
            while left and (piece := source.read(min(left, _CHUNK))):
                file.write(piece)
                left -= len(piece)
        if left:
            raise SandboxError("the bundle holds less than it says; it was not sent whole")


def _dress(inner: bytes, state: NodeState) -> None:
    """Set owner, attributes, mode and time. What we may not give to another user stays ours."""
    if (state.uid, state.gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):
            os.chown(inner, state.uid, state.gid, follow_symlinks=False)
    if state.node is Node.LINK:
        return
    for key, value in state.xattrs:
        with suppress(OSError):  # this file system keeps none, or they are root's
            os.setxattr(inner, key, value, follow_symlinks=False)
    os.chmod(inner, state.mode)
    os.utime(inner, ns=(state.mtime_ns, state.mtime_ns), follow_symlinks=False)
