"""Read mode, owner, times, link and extended attributes of a path as NodeState.

It uses directory descriptors, and never follows a link.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from artoo.contracts.changes import Node

_OVERLAY = "user.overlay."
"""The prefix of the attributes that overlayfs itself sets. It is `user.`, because bubblewrap mounts with
`userxattr`, even as root."""
_KNOWN = ("security.capability", "system.posix_acl_access", "system.posix_acl_default")
"""The system attributes that are portable. All others belong to a security module or to one file system, and are
ignored."""
_HAS_XATTRS = hasattr(os, "listxattr")
_CHUNK = 1 << 20

O_PATH = getattr(os, "O_PATH", os.O_RDONLY)
"""If the system lacks it (macOS), a directory is opened for reading instead."""
DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PASS_FLAGS = O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0)


class NodeState(NamedTuple):
    """The state of a path, with all properties that an apply must set and an undo must restore.

    `mode`: the 12 permission bits. `target`: a link's text. `rdev`: a device's number. `xattrs`: the extended
    attributes in the order of their names, without those of overlayfs. `inode`: 0 if it is not known yet. The class
    is a tuple and no dataclass, because thousands are made at once.
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
    """Return the state of `name` in an open directory, or None if it does not exist."""
    state = glance(directory, name)
    if state is None:
        return None
    xattrs = read_xattrs(directory, name)
    return state._replace(xattrs=xattrs) if xattrs else state


def glance(directory: int, name: str) -> NodeState | None:
    """Return the state without extended attributes, because reading these takes longer than everything else."""
    try:
        seen = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return state_of(seen, os.fsencode(os.readlink(name, dir_fd=directory)) if stat.S_ISLNK(seen.st_mode) else b"")


def state_of(seen: os.stat_result, target: bytes = b"") -> NodeState:
    """Build a state from a stat result and a link's target."""
    node = _KINDS.get(stat.S_IFMT(seen.st_mode), _DEVICE)
    return NodeState(  # positional arguments, because keywords would take much more time
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
    )


# names for these members, because a lookup in the enum is slow
_FILE, _DIRECTORY, _DEVICE = Node.FILE, Node.DIRECTORY, Node.DEVICE
_KINDS = {
    stat.S_IFREG: Node.FILE,
    stat.S_IFDIR: Node.DIRECTORY,
    stat.S_IFLNK: Node.LINK,
    stat.S_IFIFO: Node.FIFO,
    stat.S_IFSOCK: Node.SOCKET,
}


def at(directory: int, name: str) -> str:
    """Return a path for calls that take no directory descriptor. The directory in the returned path cannot be
    replaced meanwhile, because it is given by its descriptor."""
    return f"/proc/self/fd/{directory}/{name}" if name else f"/proc/self/fd/{directory}"


def read_xattrs(directory: int, name: str) -> tuple[tuple[str, bytes], ...]:
    """Return extended attributes, without those of overlayfs, of a security module or of a file system."""
    return tuple(one for one in _all_xattrs(at(directory, name)) if _is_kept(one[0]))


def attributes_of(directory: Path) -> tuple[tuple[str, bytes], ...]:
    """Return the attributes of a directory by its path."""
    return tuple(one for one in _all_xattrs(str(directory)) if _is_kept(one[0]))


def _is_kept(key: str) -> bool:
    return key in _KNOWN or (key.startswith(("user.", "trusted.")) and not key.startswith(_OVERLAY))


def is_opaque(directory: int, name: str) -> bool:
    """True if a directory in an upper directory hides the real directory of the same path."""
    return (f"{_OVERLAY}opaque", b"y") in _all_xattrs(at(directory, name))


def is_whiteout(state: NodeState) -> bool:
    """True if an entry of an upper directory marks its name as deleted."""
    return state.node is Node.DEVICE and state.rdev == 0


def _all_xattrs(path: str) -> list[tuple[str, bytes]]:
    if not _HAS_XATTRS:
        return []
    try:
        names = sorted(os.listxattr(path, follow_symlinks=False))
        return [(key, os.getxattr(path, key, follow_symlinks=False)) for key in names]
    # the file system has no attributes, or the file is unreadable, so that no attribute was set on it
    except OSError:
        return []


def chmod_at(directory: int, name: str, mode: int) -> None:
    """Change a mode without following a link. Raises OSError."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=directory, follow_symlinks=False)
        return
    with closing_descriptor(os.open(name, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)) as descriptor:
        if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            Path(f"/proc/self/fd/{descriptor}").chmod(mode)


def with_rights(directory: int, name: str, mode: int, rights: int) -> AbstractContextManager[None]:
    """Temporarily add owner permissions to one of artoo's own files, if a command removed them.

    Root needs no permissions. If a crash happens meanwhile, the file keeps the changed mode, which is harmless.
    """
    if mode & rights == rights or os.geteuid() == 0:
        return _UNCHANGED
    return _other_mode(directory, name, mode, rights)


_UNCHANGED = nullcontext()


@contextmanager
def _other_mode(directory: int, name: str, mode: int, rights: int) -> Generator[None]:
    chmod_at(directory, name, mode | rights)
    try:
        yield
    finally:
        chmod_at(directory, name, mode)


@contextmanager
def opened_directory(directory: int, name: str, mode: int) -> Generator[int]:
    """Open a subdirectory that belongs to artoo, even if a command removed its owner's permissions. Raises
    OSError."""
    rights = with_rights(directory, name, mode, stat.S_IRUSR | stat.S_IXUSR)
    with rights, closing_descriptor(open_directory(directory, name)) as descriptor:
        yield descriptor


def opened(place: Path) -> AbstractContextManager[int]:
    """Open a directory by its path while the context lasts. Raises OSError."""
    return closing_descriptor(os.open(place, DIRECTORY_FLAGS))


@contextmanager
def closing_descriptor(descriptor: int) -> Generator[int]:
    """Close a descriptor when the context ends."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_directory(directory: int, name: str) -> int:
    """Return a descriptor of a subdirectory. Raises OSError, including for a link."""
    return os.open(name, DIRECTORY_FLAGS, dir_fd=directory)


def digest_file(directory: int, name: str, size: int = _CHUNK) -> str:
    """Return the sha256 (hex) of a regular file. The call is faster if `size` is the exact size of the file. Raises
    OSError."""
    descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
    try:
        first = os.read(descriptor, min(size, _CHUNK) + 1)
        total = hashlib.sha256(first)
        # one byte more was requested, so this length means that the file was read completely
        if len(first) != size:
            while data := os.read(descriptor, _CHUNK):
                total.update(data)
        return total.hexdigest()
    finally:
        os.close(descriptor)


def data_ranges(descriptor: int, position: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each part of a file that is not a hole, from a position on."""
    while position < size:
        try:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        position = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, position
