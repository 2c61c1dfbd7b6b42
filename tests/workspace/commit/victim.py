"""Processes that are killed, or whose disk fails, at the n-th operation that changes something on disk."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest

from artoo.workspace.commit import execute

_OPERATIONS = (
    *("rename", "replace", "link", "symlink", "unlink", "mkdir", "rmdir", "chmod", "chown", "fsync", "utime"),
    *("write", "setxattr", "removexattr", "fchmod", "ftruncate", "open"),
)
_RENAMES = ("exchange", "put_new")


def killed(act: Callable[[], object], fuse: int, *, renames: bool = False) -> bool:
    """Do something in a process that is killed right before its n-th change on disk; True if it came to its end.

    `renames`: only the renames that replace the user's paths are counted.
    """
    child = os.fork()
    if child == 0:
        try:
            burn(fuse, renames=renames)
            act()
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happens in it
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL)
    return code == 0


def burn(fuse: int, *, renames: bool = False) -> None:
    """Kill this process right before its n-th change on disk from now on."""
    _watch(setattr, fuse, lambda: os.kill(os.getpid(), signal.SIGKILL), renames=renames)


@contextmanager
def failing(fuse: int, error: int = errno.ENOSPC, *, for_good: bool = False) -> Generator[list[str]]:
    """Let the n-th change on disk fail (`for_good`: all later ones too); yields the names of failed operations."""
    failed: list[str] = []
    with pytest.MonkeyPatch.context() as patch:

        def fail(name: str = "") -> None:
            failed.append(name)
            raise OSError(error, os.strerror(error))

        _watch(patch.setattr, fuse, fail, for_good=for_good)
        yield failed


def _watch(
    replace: Callable[..., None],
    fuse: int,
    act: Callable[[], object],
    *,
    for_good: bool = False,
    renames: bool = False,
) -> None:
    count = itertools.count(1)

    def watched(name: str, real: Any) -> Any:
        def call(*args: Any, **more: Any) -> Any:
            if name != "open" or (len(args) > 1 and args[1] & os.O_CREAT):
                number = next(count)
                if number == fuse or (for_good and number > fuse):
                    act()
            return real(*args, **more)

        return call

    for name in () if renames else _OPERATIONS:
        replace(os, name, watched(name, getattr(os, name)))
    for name in _RENAMES:
        replace(execute, name, watched(name, getattr(execute, name)))
