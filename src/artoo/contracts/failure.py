"""Classify an error text as a wrong approach or a failing environment, by the messages of the operating system.

Reference: SPEC section 4, P.

The error texts of the operating system are a closed set (`strerror`), which every program prints that fails on a
file, a permission or a connection. They are in English, because commands run in the C locale.
"""

from __future__ import annotations

import errno
import os
from enum import StrEnum
from functools import cache

# Error codes of calls that were made wrongly; all other codes report a problem of the environment.
_USAGE = frozenset(
    (
        *(errno.EINVAL, errno.ENOTTY, errno.EDOM, errno.ERANGE, errno.EBADF, errno.EFAULT),
        *(errno.ENOEXEC, errno.ENOSYS, errno.EISDIR, errno.ENOTDIR, errno.EEXIST),
    )
)


class FailureClass(StrEnum):
    """Wrong approach, or right approach and a world that did not cooperate."""

    LOGICAL = "logical"
    ENVIRONMENTAL = "environmental"


_ABSENT = (os.strerror(errno.ENOENT).casefold(), "filenotfounderror")


@cache
def _other_texts() -> tuple[str, ...]:
    codes = errno.errorcode.keys() - _USAGE - {errno.ENOENT}
    return (*(os.strerror(code).casefold() for code in codes), "name or service not known")


def failure_class(text: str, *, absence: FailureClass = FailureClass.ENVIRONMENTAL) -> FailureClass:
    """Return environmental if the text has an error message of the system about a lacking resource, otherwise
    logical. `absence` is returned if only a file is missing, because a check of finished work may look for files
    that were never made."""
    said = text.casefold()
    if any(each in said for each in _other_texts()):
        return FailureClass.ENVIRONMENTAL
    return absence if says_absent(text) else FailureClass.LOGICAL


def says_absent(text: str) -> bool:
    """Check whether the text has an error message of the system about a missing file."""
    said = text.casefold()
    return any(each in said for each in _ABSENT)
