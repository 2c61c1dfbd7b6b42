"""Resource limits that the kernel enforces on every process of a command."""

from __future__ import annotations

from artoo.ports.sandbox import Limits

_SHELL = "/bin/sh"


def limited(argv: tuple[str, ...], limits: Limits) -> tuple[str, ...]:
    """`argv` under a small shell that sets resource limits and, as the first process, ends everything with it.

    dash and busybox count processes with -p, bash with -u.
    """
    script = (
        f"ulimit -c 0; ulimit -f {limits.disk_bytes // 512}; ulimit -d {limits.memory_bytes // 1024}; "
        f"ulimit -p {limits.processes} 2>/dev/null || ulimit -u {limits.processes} 2>/dev/null; "
        '"$@"; exit $?'
    )
    return (_SHELL, "-c", script, "sh", *argv)
