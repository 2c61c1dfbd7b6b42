"""What is at a path: read through directory descriptors, never through a link."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from artoo.contracts.changes import Node

_CHUNK = 1 << 20
_ZEROS = bytes(_CHUNK)
OVERLAY_PREFIXES = ("user.overlay.", "trusted.overlay.")
"""How the names of overlayfs's own attributes begin: a user's may hold the same word further on."""
_HAS_XATTRS = hasattr(os, "listxattr")
_FREE = ("user.", "trusted.")
_KNOWN = ("security.capability", "system.posix_acl_access", "system.posix_acl_default")
"""All other attributes are a security module's or a file system's own, and mean nothing elsewhere."""

_O_PATH = getattr(os, "O_PATH", os.O_RDONLY)
DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PASS_FLAGS = _O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0)


class NodeState(NamedTuple):
    """Everything about a path that applying must make and undoing must restore.

    `mode` holds the permission bits (12 bits). `target` is a link's text, `rdev` a device's number, `xattrs` the
    extended attributes in name order, overlayfs's own left out. `inode` 0: not known yet. A tuple, because
    thousands are made at once.
    """

    node: Node
    mode: int
    uid: int
    gid: int
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    inode: int = 0
    device: int = 0
    links: int = 1
    rdev: int = 0
    target: bytes = b""
    xattrs: tuple[tuple[str, bytes], ...] = ()

    @property
    def is_directory(self) -> bool:
        return self.node is _DIRECTORY

    def same_metadata(self, other: NodeState) -> bool:
        """True if mode, owner and attributes are equal (times aside)."""
        return (self.mode, self.uid, self.gid, self.xattrs) == (other.mode, other.uid, other.gid, other.xattrs)


def read_state(directory: int, name: str) -> NodeState | None:
    """Return the state of `name` in an open directory; None when nothing is there."""
    state = glance(directory, name)
    return None if state is None else with_attributes(directory, name, state)


def with_attributes(directory: int, name: str, state: NodeState) -> NodeState:
    """Add the extended attributes to what `glance` returned."""
    xattrs = read_xattrs(directory, name)
    return state._replace(xattrs=xattrs) if xattrs else state


class Content(NamedTuple):
    """A regular file that was read: its state with attributes, its sha256, and the sha256 of its first bytes."""

    state: NodeState
    digest: str
    start: str | None


def with_content(directory: int, name: str, state: NodeState, length: int | None = None) -> Content:
    """Read a regular file that `glance` returned. `length`: how many first bytes `start` covers. Raises OSError."""
    descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
    try:
        kept = _kept(_all_xattrs(descriptor))
        digest, start = _digests_of(descriptor, state.size, length)
    finally:
        os.close(descriptor)
    return Content(state._replace(xattrs=kept) if kept else state, digest, start)


def glance(directory: int, name: str) -> NodeState | None:
    """Return the state without the attributes, which cost more than all the rest."""
    try:
        seen = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    target = os.fsencode(os.readlink(name, dir_fd=directory)) if stat.S_ISLNK(seen.st_mode) else b""
    return state_of(seen, target)


def state_of(seen: os.stat_result, target: bytes = b"", xattrs: tuple[tuple[str, bytes], ...] = ()) -> NodeState:
    """Build a state from a stat result and what it does not tell: a link's target, and attributes."""
    node = _KINDS.get(stat.S_IFMT(seen.st_mode), _DEVICE)
    return NodeState(  # positional: keywords would take half of the time
        node,
        stat.S_IMODE(seen.st_mode),
        seen.st_uid,
        seen.st_gid,
        seen.st_size if node is _FILE else 0,
        seen.st_mtime_ns,
        seen.st_ctime_ns,
        seen.st_ino,
        seen.st_dev,
        seen.st_nlink,
        seen.st_rdev,
        target,
        xattrs,
    )


_FILE, _DIRECTORY, _DEVICE = Node.FILE, Node.DIRECTORY, Node.DEVICE  # an enum looks its members up every time
_KINDS = {
    stat.S_IFREG: Node.FILE,
    stat.S_IFDIR: Node.DIRECTORY,
    stat.S_IFLNK: Node.LINK,
    stat.S_IFIFO: Node.FIFO,
    stat.S_IFSOCK: Node.SOCKET,
}


def at(directory: int, name: str) -> str:
    """Return a path for calls that take no directory descriptor; the part before `name` cannot be swapped."""
    return f"/proc/self/fd/{directory}/{name}" if name else f"/proc/self/fd/{directory}"


def read_xattrs(directory: int, name: str) -> tuple[tuple[str, bytes], ...]:
    """Return extended attributes, without those of overlayfs, of a security module or of a file system."""
    return _kept(_all_xattrs(at(directory, name)))


def attributes_of(directory: Path) -> tuple[tuple[str, bytes], ...]:
    """Return the attributes of a directory by its path."""
    return _kept(_all_xattrs(os.fspath(directory)))


def _kept(xattrs: Iterable[tuple[str, bytes]]) -> tuple[tuple[str, bytes], ...]:
    return tuple((key, value) for key, value in xattrs if is_kept(key))


def is_kept(key: str) -> bool:
    """True if an attribute is part of a state."""
    return key in _KNOWN or (key.startswith(_FREE) and not key.startswith(OVERLAY_PREFIXES))


def overlay_xattr(directory: int, name: str, key: str) -> bytes | None:
    """Return one of overlayfs's own attributes (`opaque`, `whiteout`), from whichever namespace has it."""
    for full, value in _all_xattrs(at(directory, name)):
        if full in (f"user.overlay.{key}", f"trusted.overlay.{key}"):
            return value
    return None


def overlay_marks(directory: int, name: str) -> frozenset[str]:
    """Return the names of overlayfs's own attributes of a path, without their namespace."""
    found = (
        full.split(".", 2) for full, _ in _all_xattrs(at(directory, name)) if full.startswith(OVERLAY_PREFIXES)
    )
    return frozenset(parts[2] for parts in found)


def is_opaque(directory: int, name: str) -> bool:
    """True if a directory of an upper directory hides what is below it."""
    return overlay_xattr(directory, name, "opaque") == b"y"


def is_whiteout(directory: int, name: str, state: NodeState) -> bool:
    """True if an entry of an upper directory says that this name is deleted."""
    if state.node is Node.DEVICE:
        return state.rdev == 0
    return state.node is Node.FILE and state.size == 0 and overlay_xattr(directory, name, "whiteout") is not None


def _all_xattrs(place: int | str) -> list[tuple[str, bytes]]:
    """Return all attributes of an open file, or of what is at a path."""
    if not _HAS_XATTRS:
        return []
    follow = isinstance(place, int)
    try:
        names = os.listxattr(place, follow_symlinks=follow)
        if not names:
            return []
        names.sort()
        return [(key, os.getxattr(place, key, follow_symlinks=follow)) for key in names]
    except OSError:  # the file system has none, or the file is not readable: then nothing was set on it
        return []


def chmod_at(directory: int, name: str, mode: int) -> None:
    """Change a mode without ever following a link. Raises OSError."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=directory, follow_symlinks=False)
        return
    descriptor = os.open(name, _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            Path(f"/proc/self/fd/{descriptor}").chmod(mode)
    finally:
        os.close(descriptor)


@contextmanager
def with_rights(directory: int, name: str, mode: int, rights: int) -> Generator[None]:
    """Give the owner rights to a file of artoo's own while the context lasts, if a command took them away.

    Root needs no rights. A crash meanwhile leaves the file with the rights, which costs nothing but a mode.
    """
    if mode & rights == rights or os.geteuid() == 0:
        yield
        return
    chmod_at(directory, name, mode | rights)
    try:
        yield
    finally:
        chmod_at(directory, name, mode)


@contextmanager
def opened_directory(directory: int, name: str, mode: int, rights: int = 0o500) -> Generator[int]:
    """Open a subdirectory of artoo's own, even if a command took its owner's rights away. Raises OSError."""
    with with_rights(directory, name, mode, rights):
        descriptor = open_directory(directory, name)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def open_directory(directory: int, name: str) -> int:
    """Return a descriptor of a subdirectory. Raises OSError; a link is refused."""
    return os.open(name, DIRECTORY_FLAGS, dir_fd=directory)


def digest_file(directory: int, name: str, size: int = _CHUNK) -> str:
    """Return the sha256 (hex) of a regular file of about `size` bytes, faster if that is right. Raises OSError."""
    descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
    try:
        return _digests_of(descriptor, size, None)[0]
    finally:
        os.close(descriptor)


def _digests_of(descriptor: int, size: int, length: int | None) -> tuple[str, str | None]:
    """Return the sha256 of the whole file, and of its first `length` bytes (or of all if there are fewer)."""
    first = os.read(descriptor, min(size, _CHUNK) + 1)
    whole = len(first) == size < _CHUNK  # one byte more was asked for
    total, start, left = hashlib.sha256(), None, length
    for data in (first,) if whole else _first_and_rest(descriptor, first):
        if left is not None and len(data) >= left:
            until = total.copy()
            until.update(data[:left])
            start, left = until.hexdigest(), None
        elif left is not None:
            left -= len(data)
        total.update(data)
    digest = total.hexdigest()
    return digest, digest if length is not None and start is None else start


def _first_and_rest(descriptor: int, first: bytes) -> Iterator[bytes]:
    """Yield the content. Holes are not read: the kernel takes three times as long for that as to hash them."""
    yield first
    position = len(first)
    end = os.fstat(descriptor).st_size
    for start, stop in data_ranges(descriptor, position, end):
        yield from _zeros(start - position)
        position = os.lseek(descriptor, start, os.SEEK_SET)
        while position < stop and (data := os.read(descriptor, min(stop - position, _CHUNK))):
            position += len(data)
            yield data
    yield from _zeros(end - position)
    os.lseek(descriptor, max(position, end), os.SEEK_SET)
    while data := os.read(descriptor, _CHUNK):  # what it has grown by
        yield data


def _zeros(count: int) -> Iterator[bytes]:
    for left in range(count, 0, -_CHUNK):
        yield _ZEROS[: min(left, _CHUNK)]


def data_ranges(descriptor: int, position: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a file that are not holes, from a position on."""
    while position < size:
        try:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        position = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, position
