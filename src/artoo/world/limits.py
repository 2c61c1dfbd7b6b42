"""Resource limits that the kernel enforces on every process of a command.

None of memory: what the kernel can bound for a process is the address space that it reserves, of which a sanitizer
takes terabytes and uses little. Memory that is used is counted for the whole command (`cgroup`, `watch`).
"""

from __future__ import annotations

from artoo.ports.sandbox import Limits

_SHELL = "/bin/sh"
_LOADS = "/proc/loadavg"


def limited(argv: tuple[str, ...], limits: Limits, *, among_others: bool = False) -> tuple[str, ...]:
    """`argv` under a small shell that sets resource limits and, as the first process, ends everything with it.

    The kernel counts all processes that a user has; only in a user namespace of its own does a command begin at
    nothing. Where it is counted `among_others`, its bound leaves room for all that runs on the machine now, and
    whoever watches it knows its own number; without a count, the system's own bound for a user is all there is.
    """
    running = _running() if among_others else 0
    script = (
        f"ulimit -c 0; ulimit -f {limits.file_bytes // 512}; "
        f'{"" if running is None else _processes(limits.processes + running)}"$@"; exit $?'
    )
    return (_SHELL, "-c", script, "sh", *argv)


def _processes(most: int) -> str:
    """dash and busybox count processes with -p, bash with -u."""
    return f"ulimit -p {most} 2>/dev/null || ulimit -u {most} 2>/dev/null; "


def _running() -> int | None:
    """Processes and threads of the whole machine, other containers' too; None where there is no such count."""
    try:
        with open(_LOADS, encoding="ascii") as file:
            return int(file.read().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return None
