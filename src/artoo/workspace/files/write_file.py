"""Writes one file below a root descriptor, whole or not at all, with everything but its content as it was.

The new content gets a temporary name in the same directory and then the file's name. No step follows a link: the
path is resolved before, and a process that swaps a directory for a link meanwhile causes an error, never a write
outside.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import suppress

from artoo.contracts.changes import printable_path
from artoo.contracts.errors import SandboxError
from artoo.workspace.files.beneath import open_beneath, open_parent
from artoo.workspace.fs.stat import PASS_FLAGS, read_xattrs

_NEW_MODE, _NEW_DIRECTORY_MODE = 0o666, 0o777
"""As programs make them: the umask takes the rest."""


def write_beneath(root: int, path: str, content: bytes) -> None:
    """Write the file at a resolved path, and make the directories above it as needed. Blocking.

    Raises SandboxError when it cannot hold a file, OSError (full disk, no permission).
    """
    for directory in _missing_directories(root, path):
        parent, name = open_parent(root, directory)
        try:
            with suppress(FileExistsError):
                os.mkdir(name, _NEW_DIRECTORY_MODE, dir_fd=parent)
        finally:
            os.close(parent)
    parent, name = open_parent(root, path)
    try:
        _replace(parent, name, path, content)
    finally:
        os.close(parent)


def _missing_directories(root: int, path: str) -> Iterator[str]:
    """Yield the directories above a path that are not there, outermost first."""
    parts = path.strip("/").split("/")[:-1]
    for end in range(1, len(parts) + 1):
        above = "/".join(parts[:end])
        try:
            os.close(open_beneath(root, above, PASS_FLAGS))
        except FileNotFoundError:
            yield above
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            raise SandboxError(f"{_shown(path)} cannot be written: {parts[end - 1]} is not a directory") from error


def _replace(parent: int, name: str, path: str, content: bytes) -> None:
    try:
        old = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        old = None
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise SandboxError(f"{_shown(path)} is not a regular file: choose another path")
    temporary = f".artoo-new-{uuid.uuid4().hex}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, _NEW_MODE if old is None else 0o600, dir_fd=parent)
    try:
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(content)
            if old is not None:
                _dress(parent, name, descriptor, old)
        finally:
            os.close(descriptor)
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        raise


def _dress(parent: int, name: str, descriptor: int, old: os.stat_result) -> None:
    """Give the new file the old one's owner, attributes and mode."""
    with suppress(PermissionError):  # another user's file that this user may replace
        os.fchown(descriptor, old.st_uid, old.st_gid)
    for key, value in read_xattrs(parent, name):
        with suppress(OSError):
            os.setxattr(f"/proc/self/fd/{descriptor}", key, value)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))  # last: the others may change it


def _shown(path: str) -> str:
    return printable_path(os.fsencode(f"/{path.strip('/')}"))
