"""Who holds a claim: a process, named so that others on this machine can tell whether it still lives."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_UNKNOWN = "-"


def this_process() -> str:
    """`<pid>/<start>/<pid namespace>/<boot>`: numbers of processes are used again, so the number is not enough."""
    pid = os.getpid()
    return f"{pid}/{_started(pid)}/{_namespace()}/{_boot()}"


def is_dead(holder: str) -> bool:
    """True when the process is certainly gone. False when it lives, or when that cannot be told from here."""
    parts = holder.split("/")
    if len(parts) != 4 or not parts[0].isdigit():
        return False
    pid, started, namespace, boot = parts
    if boot != _boot():
        return _UNKNOWN not in (boot, _boot())
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


def _started(pid: int) -> str:
    """When a process began, in ticks since boot, or unknown; a zombie counts as not there."""
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
