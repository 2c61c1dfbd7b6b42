"""Changes to single paths through directory descriptors: no step of a path may be a link."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path

from artoo.contracts.changes import Node
from artoo.world.journal import StateRecord, record_bytes
from artoo.world.nodes import FILE_FLAGS, OVERLAY_PREFIXES, at, data_ranges, read_xattrs
from artoo.world.opened import noted

_O_PATH = getattr(os, "O_PATH", os.O_RDONLY)
_PASS_FLAGS = _O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_COPY_CHUNK = 1 << 20
SYNC_ONE_BY_ONE = 16
"""With more at once, syncing the file system that holds them is quicker."""
_HAS_XATTRS = hasattr(os, "setxattr")


class Reach:
    """Goes to one path after another, and keeps the last one's directory open for the next.

    For one phase over paths in order: a directory that is made anew meanwhile would be missed.
    """

    def __init__(self) -> None:
        self._directory: tuple[str, str] | None = None
        self._descriptor = -1

    def parent(self, root: str, relative: str) -> tuple[int, str]:
        """The open directory that holds `relative` below `root`, and the last name ("." for the root itself).

        Both are printable paths. Raises OSError (ELOOP, ENOTDIR, ENOENT) when a step is a link or missing. The
        descriptor is valid until the next call.
        """
        above, _, name = relative.rpartition("/")
        if (root, above) != self._directory:
            self.close()
            self._descriptor = _walked(root, above)
            self._directory = root, above
        return self._descriptor, record_bytes(name) or "."

    def beside(self, path: str) -> tuple[int, str]:
        """The same for an absolute path of our own, as Python's os functions take it."""
        holder, _, name = path.rpartition("/")
        if (holder, "/") != self._directory:
            self.close()
            self._descriptor = os.open(holder, _PASS_FLAGS)
            self._directory = holder, "/"
        return self._descriptor, name

    def close(self) -> None:
        """Lets go of the directory."""
        if self._directory is not None:
            self._directory = None
            os.close(self._descriptor)

    def __enter__(self) -> Reach:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _walked(root: str, relative: str) -> int:
    descriptor = os.open(record_bytes(root), _PASS_FLAGS)
    for part in record_bytes(relative).split("/") if relative else ():
        try:
            inner = os.open(part, _PASS_FLAGS, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


@contextmanager
def parent_of(root: str, relative: str) -> Generator[tuple[int, str], None, None]:
    """`Reach.parent` of a single path."""
    with Reach() as reach:
        yield reach.parent(root, relative)


def set_metadata(directory: int, name: str, wanted: StateRecord, *, times: bool) -> None:
    """Gives what is at `name` the recorded owner, mode, attributes and (optionally) time of change.

    What it has already is not set: of a thing that is somebody else's that would be refused.
    """
    seen = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if given := (seen.st_uid, seen.st_gid) != (wanted.uid, wanted.gid):
        os.chown(name, wanted.uid, wanted.gid, dir_fd=directory, follow_symlinks=False)
    if wanted.node is not Node.LINK:
        given |= _set_attributes(directory, name, wanted)
        if given or stat.S_IMODE(seen.st_mode) != wanted.mode:  # both of these may change the mode
            set_mode(directory, name, wanted.mode)
    if times and seen.st_mtime_ns != wanted.mtime_ns:
        os.utime(name, ns=(seen.st_atime_ns, wanted.mtime_ns), dir_fd=directory, follow_symlinks=False)


def set_mode(directory: int, name: str, mode: int) -> None:
    """chmod that never follows a link."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=directory, follow_symlinks=False)
        return
    descriptor = os.open(name, _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
            os.chmod(f"/proc/self/fd/{descriptor}", mode)
    finally:
        os.close(descriptor)


def _set_attributes(directory: int, name: str, wanted: StateRecord) -> bool:
    """Whether there was anything to set."""
    if not _HAS_XATTRS:
        return False
    have, want = dict(read_xattrs(directory, name)), wanted.attributes()
    if have == want:
        return False
    with writable_for_attributes(directory, name):
        for key in have.keys() - want.keys():
            os.removexattr(at(directory, name), key, follow_symlinks=False)
        for key, value in want.items():
            if have.get(key) != value:
                os.setxattr(at(directory, name), key, value, follow_symlinks=False)
    return True


@contextmanager
def writable_for_attributes(directory: int, name: str, notes: Path | None = None) -> Generator[None, None, None]:
    """Attributes can be set only where the owner may write; the mode comes back afterwards."""
    seen = os.stat(name, dir_fd=directory, follow_symlinks=False)
    mode = stat.S_IMODE(seen.st_mode)
    locked = not stat.S_ISLNK(seen.st_mode) and mode & 0o600 != 0o600 and os.geteuid() != 0
    if not locked:
        yield
        return
    with noted(at(directory, name), mode, notes):
        set_mode(directory, name, mode | 0o600)
        try:
            yield
        finally:
            set_mode(directory, name, mode)


def strip_overlay_attributes(directory: int, name: str, notes: Path) -> None:
    """Removes overlayfs's own attributes from a file of an upper layer before it becomes the user's.

    `notes`: of the layer (`opened`).
    """
    if not _HAS_XATTRS:
        return
    path = at(directory, name)
    try:
        own = [key for key in os.listxattr(path, follow_symlinks=False) if key.startswith(OVERLAY_PREFIXES)]
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EPERM, errno.ENODATA):
            return
        raise
    if not own:
        return
    with writable_for_attributes(directory, name, notes):
        for key in own:
            os.removexattr(path, key, follow_symlinks=False)


def keep_image(directory: int, name: str, before: StateRecord, image: str) -> int:
    """Keeps what is at `name` as `image`, whose inode it returns: a hard link where that can be, else a copy.

    A file with other names is copied: writing to another name would change a linked image.
    """
    if (before.node is not Node.FILE or before.links == 1) and linked(directory, name, image):
        return before.inode
    copy_node(directory, name, before, Path(image))
    return os.lstat(image).st_ino


def linked(directory: int, name: str, target: str) -> bool:
    """Whether what is at `name` is at `target` too now; if not, it has to be copied. Raises OSError."""
    try:
        os.link(name, target, src_dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES):
            raise
        return False
    return True


def copy_node(
    directory: int, name: str, state: StateRecord, target: Path, *, durable: bool = True, notes: Path | None = None
) -> None:
    """A copy of a non-directory with its metadata. Holes stay holes. `notes`: of its layer (`opened`)."""
    target.unlink(missing_ok=True)
    if state.node is Node.LINK:
        target.symlink_to(os.readlink(name, dir_fd=directory))
    elif state.node is Node.FILE:
        _copy_content(directory, name, state, target, durable, notes)
    else:
        kind = {Node.FIFO: stat.S_IFIFO, Node.SOCKET: stat.S_IFSOCK}.get(state.node, stat.S_IFCHR)
        os.mknod(target, kind | 0o600, state.rdev)
    parent = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        set_metadata(parent, target.name, state, times=True)
    finally:
        os.close(parent)


def _copy_content(
    directory: int, name: str, state: StateRecord, target: Path, durable: bool, notes: Path | None
) -> None:
    source = _open_readable(directory, name, state, notes)
    try:
        copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for start, end in data_ranges(source, 0, state.size):
                os.lseek(source, start, os.SEEK_SET)
                os.lseek(copy, start, os.SEEK_SET)
                _copy_range(source, copy, end - start)
            os.ftruncate(copy, state.size)
            if durable:
                os.fsync(copy)
        finally:
            os.close(copy)
    finally:
        os.close(source)


def _open_readable(directory: int, name: str, state: StateRecord, notes: Path | None) -> int:
    try:
        return os.open(name, FILE_FLAGS, dir_fd=directory)
    except PermissionError:
        with noted(at(directory, name), state.mode, notes):
            set_mode(directory, name, state.mode | 0o400)
            try:
                return os.open(name, FILE_FLAGS, dir_fd=directory)
            finally:
                set_mode(directory, name, state.mode)


def _copy_range(source: int, target: int, length: int) -> None:
    while length > 0:
        data = os.read(source, min(length, _COPY_CHUNK))
        if not data:
            return
        view = memoryview(data)
        while view:
            view = view[os.write(target, view) :]
        length -= len(data)


def make_durable(descriptors: Iterable[int]) -> None:
    """Syncs and closes files and directories: one by one, or, of many, the file systems that hold them."""
    with ExitStack() as opened:
        by_device: dict[int, list[int]] = {}
        for descriptor in descriptors:
            members = by_device.setdefault(os.fstat(descriptor).st_dev, [])
            if len(members) > SYNC_ONE_BY_ONE:
                os.close(descriptor)
                continue
            opened.callback(os.close, descriptor)
            members.append(descriptor)
        for members in by_device.values():
            if len(members) > SYNC_ONE_BY_ONE:
                _sync_file_system(members[0])
                continue
            for descriptor in members:
                _sync(descriptor)


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a pipe has nothing to sync
            raise


def sync_file_system(place: Path) -> None:
    """Makes everything on the file system of `place` durable; all of them where that cannot be asked for.

    Raises OSError when something of it could not be written.
    """
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _sync_file_system(descriptor)
    finally:
        os.close(descriptor)


def _sync_file_system(descriptor: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "syncfs"):
        os.sync()
        return
    if library.syncfs(descriptor) == 0:
        return
    code = ctypes.get_errno()
    if code != errno.ENOSYS:
        raise OSError(code, os.strerror(code))
    os.sync()
