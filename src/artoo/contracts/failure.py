"""Why something failed: a wrong approach, or something in the world was lacking (SPEC section 4, P).

Error texts of the system are a closed set (`strerror`), printed by every program that fails on a file, a permission
or a connection; commands run in the plain locale, so they are in English.
"""

from __future__ import annotations

import errno
import os
from enum import StrEnum
from functools import cache

_USAGE = frozenset(
    (
        *(errno.EINVAL, errno.ENOTTY, errno.EDOM, errno.ERANGE, errno.EBADF, errno.EFAULT),
        *(errno.ENOEXEC, errno.ENOSYS, errno.EISDIR, errno.ENOTDIR, errno.EEXIST),
    )
)
"""Errors that say that a call was made wrongly; all others say something of the world."""


class FailureClass(StrEnum):
    """Wrong approach, or right approach and a world that did not cooperate."""

    LOGICAL = "logical"
    ENVIRONMENTAL = "environmental"


@cache
def _system_texts() -> tuple[str, ...]:
    codes = errno.errorcode.keys() - _USAGE
    return (*(os.strerror(code).casefold() for code in codes), "name or service not known", "filenotfounderror")


def failure_class(text: str) -> FailureClass:
    """Environmental when the system says in its own words what was lacking; logical otherwise."""
    said = text.casefold()
    return FailureClass.ENVIRONMENTAL if any(each in said for each in _system_texts()) else FailureClass.LOGICAL
