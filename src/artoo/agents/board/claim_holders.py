"""Name the process that holds a claim, and check whether that process has died on this machine.

If several machines share the database, the name begins with the machine's name. It cannot be checked whether a
process of another machine is running, so its claims end only when their leases expire.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_UNKNOWN = "-"


def this_process(machine: str = "") -> str:
    """Return the name of this process, `<pid>/<start>/<pid namespace>/<boot>`. The process id alone would not be
    unique, because ids are reused.

    If `machine` is given, it comes first. It must not contain a slash.
    """
    pid = os.getpid()
    process = f"{pid}/{_started(pid)}/{_namespace()}/{_boot()}"
    return f"{machine}/{process}" if machine else process


def is_dead(holder: str, own: str = "") -> bool:
    """Check whether the process of a claim has certainly ended. Returns False if it is running, or if that cannot
    be determined on this machine.

    `own`: the name of this process.
    """
    machine, parts = _split(holder)
    if machine != _split(own)[0] or len(parts) != 4 or not parts[0].isdigit():
        return False
    pid, started, namespace, boot = parts
    # Process ids start again at each boot, so another boot id proves that the process has ended.
    if boot != _boot():
        return _UNKNOWN not in (boot, _boot())
    # Another container may have the same process ids, so nothing can be concluded in this one.
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
    """Return the machine in the name of a process. Return "" if only one machine uses the database."""
    return _split(holder)[0]


def _split(holder: str) -> tuple[str, list[str]]:
    """Return the machine (empty if there is none) and the parts of the process name."""
    parts = holder.split("/")
    return (parts[0], parts[1:]) if len(parts) == 5 else ("", parts)


def _started(pid: int) -> str:
    """Return the start time of a process in ticks since boot, or `unknown`. A zombie counts as ended."""
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
