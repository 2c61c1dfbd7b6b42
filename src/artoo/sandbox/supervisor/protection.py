"""Keep commands from the supervisor, and bound what they may take. A part of its program: standard library only."""

from __future__ import annotations

import ctypes
import resource
import sys

from artoo.sandbox.supervisor.spawning import DEFAULT_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

_MOST_OPEN_FILES, _MOST_TIMERS = 65_536, 8_192
"""Kernel objects are memory that no process seems to have. Queued signals and POSIX timers count together."""
_SET_DUMPABLE, _SET_SUBREAPER = 4, 36


def limit(kind: int, most: int) -> None:
    """Limit every process of the sandbox for good, unless its limit is lower already."""
    soft, hard = resource.getrlimit(kind)
    most = most if hard < 0 else min(most, hard)
    resource.setrlimit(kind, (most if soft < 0 else min(soft, most), most))


def protect() -> None:
    """Keep commands from reading and signalling this process, which has their user and privileges."""
    if sys.platform == "linux":
        if ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            raise OSError("the supervisor cannot be protected from commands")
        ctypes.CDLL(None).prctl(_SET_SUBREAPER, 1, 0, 0, 0)  # so that daemons of commands stay below it
    # Python handles SIGINT by an exception, and a process that has a handler gets the signal also as process 1.
    for signal in DEFAULT_SIGNALS:
        if signal not in (_signal.SIGPIPE, _signal.SIGXFSZ):
            _signal.signal(signal, _signal.SIG_IGN if signal in _IGNORED else _signal.SIG_DFL)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_IGN)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_NOFILE, _MOST_OPEN_FILES)
    if sys.platform == "linux":
        limit(resource.RLIMIT_SIGPENDING, _MOST_TIMERS)


_IGNORED = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGTTOU, _signal.SIGTTIN)
"""Where it is not process 1, signals for a whole terminal or process group must not end it before its commands."""
