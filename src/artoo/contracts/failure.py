"""Classify why something failed: a wrong approach, or something in the world was lacking (SPEC section 4, P).

Error texts of the system are a closed set (`strerror`), printed by every program that fails on a file, a permission
or a connection; commands run in the plain locale, so they are in English.
"""

from __future__ import annotations

import errno
import os
from enum import StrEnum
from functools import cache

# Errors that say that a call was made wrongly; all others say something of the world.
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
    """Return environmental when the system says in its own words what was lacking; logical otherwise. `absence`:
    what it is when that is a file alone, because a check of finished work may look for files that were never
    made."""
    said = text.casefold()
    if any(each in said for each in _other_texts()):
        return FailureClass.ENVIRONMENTAL
    return absence if says_absent(text) else FailureClass.LOGICAL


def says_absent(text: str) -> bool:
    """Check whether the system says that a file is not there."""
    said = text.casefold()
    return any(each in said for each in _ABSENT)
