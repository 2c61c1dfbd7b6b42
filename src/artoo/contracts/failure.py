"""Classify an error text as a wrong approach or a failing environment, by the messages of the operating system.

Reference: SPEC section 4, P.

The error texts of the operating system are a fixed set (`strerror`). Every program that fails because of a file, a
permission or a connection prints one of them. They are in English, because commands are run in the C locale.
"""

from __future__ import annotations

import errno
import os
from enum import StrEnum
from functools import cache

# Error codes that mean that a call was made in a wrong way. All other codes report a problem of the environment.
_USAGE = frozenset(
    (
        *(errno.EINVAL, errno.ENOTTY, errno.EDOM, errno.ERANGE, errno.EBADF, errno.EFAULT),
        *(errno.ENOEXEC, errno.ENOSYS, errno.EISDIR, errno.ENOTDIR, errno.EEXIST),
    )
)


class FailureClass(StrEnum):
    """The class of a failure. Either the approach was wrong, or it was right and the environment prevented the
    success."""

    LOGICAL = "logical"
    ENVIRONMENTAL = "environmental"


_ABSENT = (os.strerror(errno.ENOENT).casefold(), "filenotfounderror")


@cache
def _other_texts() -> tuple[str, ...]:
    codes = errno.errorcode.keys() - _USAGE - {errno.ENOENT}
    return (*(os.strerror(code).casefold() for code in codes), "name or service not known")


def failure_class(text: str, *, absence: FailureClass = FailureClass.ENVIRONMENTAL) -> FailureClass:
    """Return environmental if the text contains an error message of the system about a missing resource. Otherwise
    return logical. If only a file is missing, `absence` is returned instead, because a check of the result may look
    for a file that was never made."""
    said = text.casefold()
    if any(each in said for each in _other_texts()):
        return FailureClass.ENVIRONMENTAL
    return absence if says_absent(text) else FailureClass.LOGICAL


def says_absent(text: str) -> bool:
    """Return whether the text contains an error message of the system about a missing file."""
    said = text.casefold()
    return any(each in said for each in _ABSENT)
