"""Why a call failed, by its record and the system's own error texts: a wrong approach, or something was lacking.

Error texts of the system are a closed set (`strerror`), printed by every program that fails on a file, a permission
or a connection; commands run in the plain locale, so they are in English.
"""

from __future__ import annotations

import errno
import os
from functools import cache

from artoo.contracts.execution import CallStatus, FailureClass, ToolCall

_USAGE = frozenset(
    (
        *(errno.EINVAL, errno.ENOTTY, errno.EDOM, errno.ERANGE, errno.EBADF, errno.EFAULT),
        *(errno.ENOEXEC, errno.ENOSYS, errno.EISDIR, errno.ENOTDIR, errno.EEXIST),
    )
)
"""Errors that say that a call was made wrongly; all others say something of the world."""

_OWN_ABSENCE = "there is no "
"""How artoo's own file tools begin when a path is not there."""


@cache
def _system_texts() -> tuple[str, ...]:
    codes = errno.errorcode.keys() - _USAGE
    return (*(os.strerror(code).casefold() for code in codes), "name or service not known", "filenotfounderror")


def failure_class(text: str) -> FailureClass:
    """Environmental when the system says in its own words what was lacking; logical otherwise."""
    said = text.casefold()
    return FailureClass.ENVIRONMENTAL if any(each in said for each in _system_texts()) else FailureClass.LOGICAL


def failure_class_of(call: ToolCall) -> FailureClass:
    """The class of one failed call: cut off, kept back, or something that the system says was lacking."""
    if call.status in (CallStatus.TIMEOUT, CallStatus.INTERRUPTED) or call.withheld_by is not None or call.dropped:
        return FailureClass.ENVIRONMENTAL
    if call.status is CallStatus.REFUSED:
        return FailureClass.LOGICAL
    if (call.reason or "").startswith(_OWN_ABSENCE):
        return FailureClass.ENVIRONMENTAL
    return failure_class("\n".join((call.reason or "", call.error_output, call.output)))
