"""Tell from outside whether a command waits for input. Best effort, by what /proc says about its processes.

A process waits if it sleeps in a read of the command's input, or in a call that waits for that descriptor alone
(`select` and `poll` with one descriptor, as line editors do; `epoll_wait` on a set that holds descriptor 0, as node
does). Where the system says nothing (macOS, a kernel without /proc/PID/syscall) the answer is always no.
"""

from __future__ import annotations

import os
import platform
import stat

from artoo.sandbox.supervisor.processes import processes, read_file

_READS = {"x86_64": (0, 19), "aarch64": (63, 65)}
_SELECTS = {"x86_64": (23, 270), "aarch64": (72,)}
_POLLS = {"x86_64": (7, 271), "aarch64": (73,)}
_EPOLLS = {"x86_64": (232, 281, 441), "aarch64": (22, 441)}


def waits_for_input(ours: int) -> bool:
    """True if a process sleeps until it can read what is written to `ours`.

    `ours` is the writing end of the command's input: of a pipe, or the controlling side of a pseudo-terminal.
    """
    stats = processes()
    if os.isatty(ours):  # only the foreground group of a terminal may read it
        group = b"%d" % os.tcgetpgrp(ours)
        readers = [pid for pid, fields in stats.items() if fields[2] == group and _has_as_input(pid, None)]
    else:
        pipe = os.fstat(ours)
        readers = [pid for pid in stats if _has_as_input(pid, pipe)]
    return any(map(_sleeps_in_read, readers)) and not any(stats[pid][0] in (b"R", b"D") for pid in readers)


def _has_as_input(pid: int, pipe: os.stat_result | None) -> bool:
    """True if the standard input of a process is this pipe; None: is a terminal."""
    try:
        found = os.stat(f"/proc/{pid}/fd/0")
    except OSError:
        return False
    return stat.S_ISCHR(found.st_mode) if pipe is None else os.path.samestat(found, pipe)


def _sleeps_in_read(pid: int) -> bool:
    words = read_file(f"/proc/{pid}/syscall").split()
    if len(words) < 4 or words[0] in (b"running", b"-1"):
        return False
    machine, call, first, second = platform.machine(), int(words[0]), int(words[1], 16), int(words[2], 16)
    if call in _READS.get(machine, ()):
        return first == 0
    if call in _SELECTS.get(machine, ()):
        return first == 1
    if call in _POLLS.get(machine, ()):
        return second == 1
    watched = read_file(f"/proc/{pid}/fdinfo/{first}") if call in _EPOLLS.get(machine, ()) else b""
    return any(line.split()[1] == b"0" for line in watched.splitlines() if line.startswith(b"tfd:"))
