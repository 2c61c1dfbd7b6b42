"""What is at a path: read through directory descriptors, never through a link."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from artoo.contracts.changes import Node
from artoo.world.git_index import LARGEST, SIGNATURE, staged

_CHUNK = 1 << 20
_NOTHING = bytes(_CHUNK)
OVERLAY_PREFIXES = ("user.overlay.", "trusted.overlay.")
"""How the names of overlayfs's own attributes begin: a person's may hold the same word further on."""
_HAS_XATTRS = hasattr(os, "listxattr")
_FREE = ("user.", "trusted.")
_KNOWN = ("security.capability", "system.posix_acl_access", "system.posix_acl_default")
"""All other attributes are a security module's or a file system's own, and mean nothing elsewhere."""

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0)


class NodeState(NamedTuple):
    """Everything about a path that applying must make and undoing must put back.

    `mode` holds the permission bits (12 bits). `target` is a link's text, `rdev` a device's number, `xattrs` the
    extended attributes in name order, overlay's own left out. `inode` 0: not known yet. A tuple, because thousands
    are made at once.
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
        """Whether mode, owner and attributes are equal (times aside)."""
        return (self.mode, self.uid, self.gid, self.xattrs) == (other.mode, other.uid, other.gid, other.xattrs)


def read_state(directory: int, name: str) -> NodeState | None:
    """The state of `name` in an open directory, None when nothing is there."""
    state = glance(directory, name)
    return None if state is None else with_attributes(directory, name, state)


def with_attributes(directory: int, name: str, state: NodeState) -> NodeState:
    """What `glance` saw, and the attributes."""
    xattrs = read_xattrs(directory, name)
    return state._replace(xattrs=xattrs) if xattrs else state


class Content(NamedTuple):
    """A regular file that was read: its state with attributes, `digest_file`, and the digest of its first bytes.

    `unmarked`: it has no attributes whatever, those that `NodeState` leaves out included.
    """

    state: NodeState
    digest: str
    start: str | None
    unmarked: bool


def with_content(directory: int, name: str, state: NodeState, length: int | None = None) -> Content:
    """Reads a regular file that `glance` saw; its first bytes are `length`, or all if they are fewer. It is opened
    once. Raises OSError."""
    descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
    try:
        every = _all_xattrs(descriptor)
        digest, start = _digests_of(descriptor, state.size, length)
    finally:
        os.close(descriptor)
    kept = _kept(every) if every else ()
    return Content(state._replace(xattrs=kept) if kept else state, digest, start, every == [])


def glance(directory: int, name: str) -> NodeState | None:
    """`read_state` without the attributes, which cost more than all the rest."""
    try:
        seen = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    target = os.fsencode(os.readlink(name, dir_fd=directory)) if stat.S_ISLNK(seen.st_mode) else b""
    return state_of(seen, target)


def state_of(seen: os.stat_result, target: bytes = b"", xattrs: tuple[tuple[str, bytes], ...] = ()) -> NodeState:
    """The state that a stat result tells, with a link's target and attributes, which it does not tell."""
    node = _KINDS.get(stat.S_IFMT(seen.st_mode), _DEVICE)
    return NodeState(  # in order, without names: they would take half of the time
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


_FILE, _DIRECTORY, _DEVICE = Node.FILE, Node.DIRECTORY, Node.DEVICE  # an enum looks its members up anew each time
_KINDS = {
    stat.S_IFREG: Node.FILE,
    stat.S_IFDIR: Node.DIRECTORY,
    stat.S_IFLNK: Node.LINK,
    stat.S_IFIFO: Node.FIFO,
    stat.S_IFSOCK: Node.SOCKET,
}


def at(directory: int, name: str) -> str:
    """A path for calls that take no directory descriptor; the part before `name` cannot be swapped."""
    return f"/proc/self/fd/{directory}/{name}" if name else f"/proc/self/fd/{directory}"


def read_xattrs(directory: int, name: str) -> tuple[tuple[str, bytes], ...]:
    """Extended attributes, those left out that are overlay's, a security module's or a file system's own."""
    return _kept(_all_xattrs(at(directory, name)))


def attributes_of(directory: Path) -> tuple[tuple[str, bytes], ...]:
    """`read_xattrs` of a directory by its path."""
    return _kept(_all_xattrs(os.fspath(directory)))


def _kept(xattrs: Iterable[tuple[str, bytes]]) -> tuple[tuple[str, bytes], ...]:
    return tuple((key, value) for key, value in xattrs if is_kept(key))


def is_kept(key: str) -> bool:
    """Whether an attribute is part of a state. Records of earlier versions hold others too."""
    return key in _KNOWN or (key.startswith(_FREE) and not key.startswith(OVERLAY_PREFIXES))


def overlay_xattr(directory: int, name: str, key: str) -> bytes | None:
    """One of overlay's own attributes (`opaque`, `whiteout`), in whichever namespace it was written."""
    for full, value in _all_xattrs(at(directory, name)):
        if full in (f"user.overlay.{key}", f"trusted.overlay.{key}"):
            return value
    return None


def _all_xattrs(place: int | str) -> list[tuple[str, bytes]]:
    """Of an open file, or of what is at a path."""
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


def open_directory(directory: int, name: str) -> int:
    """A descriptor of a subdirectory. Raises OSError (a link is refused)."""
    return os.open(name, DIRECTORY_FLAGS, dir_fd=directory)


def digest_file(directory: int, name: str, size: int = _CHUNK) -> str:
    """sha256 (hex) of a regular file of about `size` bytes (it is quicker when that is right). Raises OSError.

    Of git's index it is that of what it stages (`git_index`): the rest git writes anew by itself.
    """
    descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
    try:
        return _digests_of(descriptor, size, None)[0]
    finally:
        os.close(descriptor)


def _digests_of(descriptor: int, size: int, length: int | None) -> tuple[str, str | None]:
    """Of the whole file, and of its first `length` bytes, or of all if they are fewer."""
    first = os.read(descriptor, min(size, _CHUNK) + 1)
    whole = len(first) == size < _CHUNK  # one byte more was asked for
    rest = () if whole else _chunks(descriptor, len(first))
    if not first.startswith(SIGNATURE) or os.fstat(descriptor).st_size > LARGEST:
        return _digests(chain((first,), rest), length)
    content = first + b"".join(rest)
    said = staged(content)
    plain, start = _digests((content,), length)
    return plain if said is None else hashlib.sha256(said).hexdigest(), start


def _digests(chunks: Iterable[bytes], length: int | None) -> tuple[str, str | None]:
    total, start, left = hashlib.sha256(), None, length
    for data in chunks:
        if left is not None and len(data) >= left:
            until = total.copy()
            until.update(data[:left])
            start, left = until.hexdigest(), None
        elif left is not None:
            left -= len(data)
        total.update(data)
    whole = total.hexdigest()
    return whole, whole if length is not None and start is None else start


def _chunks(descriptor: int, position: int) -> Iterator[bytes]:
    """From a position on. Holes are not read: the kernel takes three times as long for that as to hash them."""
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
        yield _NOTHING[: min(left, _CHUNK)]


def data_ranges(descriptor: int, position: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that are not holes, from a position on."""
    while position < size:
        try:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        position = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, position
