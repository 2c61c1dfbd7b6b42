"""Start a program, which is found as a shell finds it. For the supervisor: standard library only."""

from __future__ import annotations

import _socket
import ctypes
import errno
import os
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable

    from artoo.sandbox.supervisor.confinement import Confinement
else:
    import _signal

_SPAWN_AGAIN_AS_SCRIPT = errno.ENOEXEC
_NOT_FOUND = (errno.ENOENT, errno.ENOTDIR)
_SET_DEATH_SIGNAL = 1
DEFAULT_SIGNALS = tuple(_signal.valid_signals() - {_signal.SIGKILL, _signal.SIGSTOP})

Fields = list[bytes]


class CannotRun(Exception):
    """Raised for a program that is missing or cannot be executed."""

    def __init__(self, message: bytes, exit_code: int) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


def spawn(argv: Fields, environment: dict[bytes, bytes], descriptors: list[int]) -> int:
    """Start a program in a session of its own with three descriptors and no others.

    posix_spawn shares this process's memory until the program runs (vfork), so it takes 0.4 ms where fork takes 3.
    All descriptors but these are closed on exec, and the working directory and limits are this process's for now.
    """
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(descriptors[:3])]

    def run(path: bytes, argv: Fields) -> int:
        return os.posix_spawn(
            path, argv, environment, file_actions=actions, setsid=True, setsigdef=DEFAULT_SIGNALS, setsigmask=()
        )

    return _first_that_runs(argv, environment, run)


def become(
    argv: Fields,
    environment: dict[bytes, bytes],
    descriptors: list[int],
    terminal: int,
    report: _socket.socket,
    confinement: Confinement | None,
) -> None:
    """Become the program, in the process that was forked for it. `terminal`: -1 for a command without one."""
    try:
        _signal.set_wakeup_fd(-1)
        os.setsid()
        if terminal >= 0:
            import fcntl
            import termios

            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            descriptors = [terminal] * 3
        for number, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, number)
        for signal in DEFAULT_SIGNALS:
            _signal.signal(signal, _signal.SIG_DFL)
        if sys.platform == "linux" and os.getppid() != 1:
            ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, _signal.SIGKILL, 0, 0, 0)
        if confinement is not None:
            confinement.confine(report)
        report.close()
        _first_that_runs(argv, environment, lambda path, argv: os.execve(path, argv, environment))
    except CannotRun as problem:
        os.write(2, problem.message)
        os._exit(problem.exit_code)
    except OSError as error:
        os.write(2, b"%s: %s\n" % (argv[0], os.fsencode(error.strerror or "")))
    os._exit(126)


def _first_that_runs(argv: Fields, environment: dict[bytes, bytes], run: Callable[[bytes, Fields], int]) -> int:
    """Call `run(path, argv)` with each place where a shell looks for the program, until one can be executed."""
    found: OSError | None = None
    for path in _candidates(argv[0], environment.get(b"PATH", os.defpath.encode())):
        try:
            return run(path, argv)
        except OSError as error:
            if error.errno == _SPAWN_AGAIN_AS_SCRIPT:  # a script without a first line that says by what
                return run(b"/bin/sh", [b"sh", path, *argv[1:]])
            if error.errno in _NOT_FOUND and not os.path.lexists(path):
                continue
            if error.errno not in (*_NOT_FOUND, errno.EACCES, errno.E2BIG):
                raise
            found = error
    if found is None:
        raise CannotRun(b"%s: command not found\n" % argv[0], 127)
    raise CannotRun(b"%s: %s\n" % (argv[0], os.fsencode(found.strerror or "")), 126)


def limit_files(most_bytes: int) -> None:
    """Limit the size of a file for the next command: softly, because a hard limit could never be raised again."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes if hard < 0 else min(most_bytes, hard), hard))


def _candidates(program: bytes, path: bytes) -> Fields:
    if b"/" in program:
        return [program]
    return [(directory or b".") + b"/" + program for directory in path.split(b":")]
