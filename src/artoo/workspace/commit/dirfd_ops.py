"""Copy, link, rename, exchange and sync single paths through directory descriptors.

No component of a path is ever followed if it is a link.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import pathlib
import stat
import sys
from collections import defaultdict
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from functools import cache

from artoo.contracts.changes import Node
from artoo.disk.file_system import sync_file_system_of
from artoo.workspace.files.walker import Place, Walker
from artoo.workspace.fs.stat import (
    FILE_FLAGS,
    NodeState,
    at,
    chmod_at,
    closing_descriptor,
    data_ranges,
    read_xattrs,
)

SYNC_ONE_BY_ONE = 16
"""The maximum number of files that are synced separately. For more, one `syncfs` is faster than an `fsync` of each
file."""
_CANNOT_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES)
_CHUNK = 1 << 20
_FICLONE = 0x40049409
_HAS_XATTRS = hasattr(os, "setxattr")


def set_metadata(place: Place, wanted: NodeState, *, times: bool) -> None:
    """Set the owner, mode, attributes and (with `times`) the modification time of a path. Raises OSError.

    Values that are already right are not set again, because the system would refuse that for another user's file.
    """
    directory, name = place
    seen = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if given := (seen.st_uid, seen.st_gid) != (wanted.uid, wanted.gid):
        os.chown(name, wanted.uid, wanted.gid, dir_fd=directory, follow_symlinks=False)
    if wanted.node is not Node.LINK:
        given |= _set_attributes(place, wanted, stat.S_IMODE(seen.st_mode))
        # a new owner or access list may have changed the mode
        if given or stat.S_IMODE(seen.st_mode) != wanted.mode:
            chmod_at(directory, name, wanted.mode)
    if times and seen.st_mtime_ns != wanted.mtime_ns:
        os.utime(name, ns=(seen.st_atime_ns, wanted.mtime_ns), dir_fd=directory, follow_symlinks=False)


def _set_attributes(place: Place, wanted: NodeState, mode: int) -> bool:
    """Set and remove extended attributes. Returns True if any was changed."""
    have = dict(read_xattrs(*place)) if _HAS_XATTRS else {}
    want = dict(wanted.xattrs)
    if have == want:
        return False
    # Attributes can be set only with write permission, so the owner gets it for a moment if the final mode has
    # none.
    if mode & 0o600 != 0o600 and os.geteuid() != 0:  # the caller sets the final mode
        chmod_at(*place, mode | 0o600)
    for key in have.keys() - want.keys():
        os.removexattr(at(*place), key, follow_symlinks=False)
    for key, value in want.items():
        if have.get(key) != value:
            os.setxattr(at(*place), key, value, follow_symlinks=False)
    return True


def link(source: Place, target: Place) -> bool:
    """Make a hard link. Returns False if the file system or a permission does not allow it. Raises OSError."""
    try:
        os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        return False
    return True


def copy(source: Place, state: NodeState, target: Place) -> int:
    """Copy a file, or make a link, with the metadata in `state`. Returns the new inode. Raises OSError.

    Contents are cloned if the file system supports it (FICLONE). Holes are preserved.
    """
    directory, name = target
    if state.node is Node.LINK:
        os.symlink(os.fsdecode(state.target), name, dir_fd=directory)
        set_metadata(target, state, times=True)
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_ino
    if state.node is not Node.FILE:
        raise OSError(errno.EINVAL, "neither a regular file nor a link")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with (
        closing_descriptor(os.open(source[1], FILE_FLAGS, dir_fd=source[0])) as old,
        closing_descriptor(os.open(name, flags, 0o600, dir_fd=directory)) as new,
    ):
        _copy_content(old, new, state.size)
        seen = os.fstat(old)
        if (seen.st_size, seen.st_mtime_ns) != (state.size, state.mtime_ns):
            raise OSError(errno.ESTALE, "it was changed while it was copied")
        made = os.fstat(new)
        # the directory's default access list may have added an attribute
        inherits = _HAS_XATTRS and os.listxattr(new)
        if state.xattrs or inherits or (made.st_uid, made.st_gid) != (state.uid, state.gid):
            set_metadata(target, state, times=True)
        else:
            os.fchmod(new, state.mode)
            os.utime(new, ns=(made.st_atime_ns, state.mtime_ns))
        return made.st_ino


def _copy_content(source: int, target: int, size: int) -> None:
    if size <= _CHUNK // 4:  # for a small file, one read and one write are faster than a clone
        _write_all(target, os.read(source, size + 1))
        return
    with suppress(OSError):
        fcntl.ioctl(target, _FICLONE, source)
        return
    for start, end in data_ranges(source, 0, size):
        os.lseek(source, start, os.SEEK_SET)
        os.lseek(target, start, os.SEEK_SET)
        while start < end and (data := os.read(source, min(end - start, _CHUNK))):
            _write_all(target, data)
            start += len(data)
    os.ftruncate(target, size)


def _write_all(target: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(target, left) :]


def mount_of(descriptor: int) -> tuple[int, int]:
    """Return the file system and the mount of an open file. A rename works only within one mount."""
    device = os.fstat(descriptor).st_dev
    with suppress(OSError), pathlib.Path(f"/proc/self/fdinfo/{descriptor}").open("rb") as told:
        return device, next((int(line.split()[1]) for line in told if line.startswith(b"mnt_id:")), 0)
    return device, 0


def sync(paths: Iterable[str]) -> None:
    """Sync files and directories one by one, or, if there are many, their whole file systems.

    Paths that are missing, links, or not readable are skipped. Raises OSError.
    """
    by_device: defaultdict[int, list[str]] = defaultdict(list)
    with Walker() as walker:
        for path in paths:
            with suppress(OSError), _opened(walker, path) as descriptor:
                by_device[os.fstat(descriptor).st_dev].append(path)
        for members in by_device.values():
            many = len(members) > SYNC_ONE_BY_ONE
            for path in members[: 1 if many else None]:
                with _opened(walker, path) as descriptor:
                    (sync_file_system_of if many else os.fsync)(descriptor)


def _opened(walker: Walker, path: str) -> AbstractContextManager[int]:
    directory, name = walker.place(path)
    return closing_descriptor(os.open(name, FILE_FLAGS, dir_fd=directory))


def same_version(now: NodeState | None, state: NodeState | None) -> bool:
    """True if two states are the same version of a path. Kind and inode are compared, and for files and links also
    size, time and target."""
    if now is None or state is None:
        return now is None and state is None
    if now.node is not state.node or now.inode != state.inode:
        return False
    return now.is_directory or (now.size, now.mtime_ns, now.target) == (state.size, state.mtime_ns, state.target)


_NOREPLACE = 1
_EXCHANGE = 2
_MAC_EXCHANGE = 2
_MAC_NOREPLACE = 4
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def put_new(source: Place, target: Place) -> None:
    """Move `source` (not a directory) to `target`, which must not exist. Raises OSError: EEXIST, EXDEV, ..."""
    number = _rename(source, target, _MAC_NOREPLACE if sys.platform == "darwin" else _NOREPLACE)
    if number in _UNSUPPORTED:
        os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)
        os.unlink(source[1], dir_fd=source[0])
    elif number:
        raise OSError(number, os.strerror(number), target[1])


def exchange(one: Place, other: Place) -> bool:
    """Exchange two names atomically. Returns False if it is not supported. Raises OSError: ENOENT, EXDEV, ..."""
    number = _rename(one, other, _MAC_EXCHANGE if sys.platform == "darwin" else _EXCHANGE)
    if number in _UNSUPPORTED:
        return False
    if number:
        raise OSError(number, os.strerror(number), other[1])
    return True


def _rename(source: Place, target: Place, flags: int) -> int:
    """Rename with flags. Returns the error number, or 0 for success."""
    call = _call()
    if call is None:
        return errno.ENOSYS
    done = call(source[0], os.fsencode(source[1]), target[0], os.fsencode(target[1]), flags)
    return ctypes.get_errno() if done != 0 else 0


@cache
def _call() -> ctypes._NamedFuncPointer | None:  # pyright: ignore[reportPrivateUsage]
    """Return the C library's rename function with flags, or None if it is missing."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        call = library.renameatx_np if sys.platform == "darwin" else library.renameat2
    except AttributeError:
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    call.restype = ctypes.c_int
    return call
