"""Name the process that holds a claim, so that others on this machine can tell whether it still lives.

Where several machines share the database, the machine's name stands before the process's. Nothing is known here
about processes of other machines, whose leases run out.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_UNKNOWN = "-"


def this_process(machine: str = "") -> str:
    """Return `<pid>/<start>/<pid namespace>/<boot>`, because numbers of processes are used again.

    With `machine`, which has no slash, that comes first.
    """
    pid = os.getpid()
    process = f"{pid}/{_started(pid)}/{_namespace()}/{_boot()}"
    return f"{machine}/{process}" if machine else process


def is_dead(holder: str, own: str = "") -> bool:
    """Check whether the process is certainly gone. False when it lives, or when that cannot be told from here.

    `own`: the name of the asking process.
    """
    machine, parts = _split(holder)
    if machine != _split(own)[0] or len(parts) != 4 or not parts[0].isdigit():
        return False
    pid, started, namespace, boot = parts
    # Numbers of processes start again at each boot, so another boot proves the death.
    if boot != _boot():
        return _UNKNOWN not in (boot, _boot())
    # Another container may have the same numbers: nothing can be told about it from here.
    if namespace != _namespace():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    now = _started(int(pid))
    return now != started and _UNKNOWN not in (now, started)


def machine_of(holder: str) -> str:
    """Return the machine of a holder; empty where only one uses the database."""
    return _split(holder)[0]


def _split(holder: str) -> tuple[str, list[str]]:
    """Return the machine, empty without one, and the parts of the process."""
    parts = holder.split("/")
    return (parts[0], parts[1:]) if len(parts) == 5 else ("", parts)


def _started(pid: int) -> str:
    """Return the start of a process in ticks since boot, or unknown; a zombie counts as not there."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return _UNKNOWN
    return "zombie" if fields[0] in "ZX" else fields[19]


@cache
def _namespace() -> str:
    try:
        return Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return _UNKNOWN


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return _UNKNOWN
