"""What an exit code says of a limit: 128 and a signal's number, as shells tell that a signal ended a program.

Only signals that a limit sends are read: with other codes above 128 programs end by themselves (git: 129, a wrong
option). What the sandbox itself ended has a status of its own (`ports.workspace.EndStatus`) and no exit code.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping
from typing import Final

from artoo.ports.workspace import CommandLimits

_SHELLS = 128

_MEANINGS: Final[Mapping[int, str]] = {
    # with the system's words for the same limit, as a program gets them that ignores the signal
    signal.SIGXFSZ: f"{os.strerror(errno.EFBIG)}: no file may grow over {{largest}} bytes here",
    signal.SIGXCPU: "too much processor time, by a limit of this machine",
    signal.SIGKILL: "killed, and by no limit that artoo knows to be reached",
}


def signalled(exit_code: int | None, limits: CommandLimits) -> str | None:
    """The limit that this exit code tells of, in words; None when it tells of none.

    A negative code is a signal's number, as Python has it of a program that no shell stands before.
    """
    if exit_code is None:
        return None
    number = -exit_code if exit_code < 0 else exit_code - _SHELLS
    meaning = _MEANINGS.get(number)
    if meaning is None:
        return None
    return f"ended as by {signal.Signals(number).name} ({meaning.format(largest=limits.file_bytes)})"
