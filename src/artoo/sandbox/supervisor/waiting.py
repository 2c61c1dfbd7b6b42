"""Tell from outside whether a command waits for input. Best effort, by what /proc says about its processes.

A process waits if it sleeps in a read of the command's input, or in a call that waits for that descriptor alone
(`select` and `poll` with one descriptor, as line editors do; `epoll_wait` on a set that holds descriptor 0, as node
does). Where the system says nothing (macOS, a kernel without /proc/PID/syscall) the answer is always no.
"""

from __future__ import annotations

import os
import platform
import stat
from pathlib import Path

_READS = {"x86_64": (0, 19), "aarch64": (63, 65)}
_POLLS = {"x86_64": (7, 23, 270, 271), "aarch64": (72, 73)}
_EPOLLS = {"x86_64": (232, 281, 441), "aarch64": (22, 441)}
_POLL_LIKE = {"x86_64": (7, 271), "aarch64": (73,)}
"""Of these the count of descriptors is the second argument, of the others the first."""


def waits_for_input(leader: int, ours: int) -> bool:
    """True if a process of the session of `leader` (a pid) sleeps until it can read what is written to `ours`.

    `ours` is the writing end of the command's input: of a pipe, or the controlling side of a pseudo-terminal.
    """
    input_is = os.fstat(ours)
    terminal = os.isatty(ours)
    session = [pid for pid in _processes() if _session(pid) == leader]
    readers = [pid for pid in session if _has_as_input(pid, input_is, terminal)]
    return any(_sleeps_in_read(pid) for pid in readers) and not any(_is_busy(pid) for pid in readers)


def _processes() -> list[int]:
    try:
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    except OSError:
        return []


def _fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _session(pid: int) -> int:
    fields = _fields(pid)
    return int(fields[3]) if fields else 0


def _is_busy(pid: int) -> bool:
    """True if a process runs, or waits for the disk."""
    fields = _fields(pid)
    return bool(fields) and fields[0] in "RD"


def _has_as_input(pid: int, input_is: os.stat_result, terminal: bool) -> bool:
    try:
        found = os.stat(f"/proc/{pid}/fd/0")
    except OSError:
        return False
    if terminal:
        return stat.S_ISCHR(found.st_mode) and _in_foreground(pid)
    return (found.st_dev, found.st_ino) == (input_is.st_dev, input_is.st_ino)


def _in_foreground(pid: int) -> bool:
    """True if a process may read its terminal."""
    fields = _fields(pid)
    return bool(fields) and fields[2] == fields[5]


def _sleeps_in_read(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/syscall").read_text(encoding="ascii").split()
    except OSError:
        return False
    if len(words) < 4 or words[0] in ("running", "-1"):
        return False
    machine, call, first, second = platform.machine(), int(words[0]), int(words[1], 16), int(words[2], 16)
    if call in _READS.get(machine, ()):
        return first == 0
    if call in _POLLS.get(machine, ()):
        return (second if call in _POLL_LIKE[machine] else first) == 1
    if call in _EPOLLS.get(machine, ()):
        return _watches_input(pid, first)
    return False


def _watches_input(pid: int, epoll: int) -> bool:
    try:
        lines = Path(f"/proc/{pid}/fdinfo/{epoll}").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    return any(line.split()[1] == "0" for line in lines if line.startswith("tfd:"))
