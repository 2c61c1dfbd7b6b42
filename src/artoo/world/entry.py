"""The last step into bubblewrap's sandbox, and the command's first process: limits, Landlock, then the command.

A read-only mount does not keep anybody from writing to a named pipe in it, and bubblewrap cannot restrict files
by itself. Whoever has put Landlock on may not mount any more, so it must happen inside, after the last mount and
before the command. It allows to open for writing, and to move and link between directories, below the given
directories and nowhere else (one that does not exist allows nothing).

Then it waits to be told what to run, which may have been said already or be said much later (`standing`). It closes
every descriptor but the first three, and the command runs as a child: when it ends, the first process ends as it
did, and the kernel ends all others with that one.

bubblewrap's first process asks to die with its parent, and does not look whether that is dead already
(containers/bubblewrap#633): killed with artoo in that moment, it would leave a command that nobody knows of. So the
last thing before the command is to say a word to artoo, which is refused when there is none. What is killed still
earlier waits for ever for its parent (`orphans`).

`steps` does this in 0.5 ms. Where there is no machine code for the processor, `launcher.py enter` and a shell do
the same in 20 ms. A shell also starts what the kernel itself does not: a script without a first line that says by
what, and it says what is wrong with a program that is missing.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import socket
import struct
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Limits
from artoo.world.limits import limited
from artoo.world.steps import FORK, RESULT, Block, Steps, later, later_in, program, run_from_memory, supported

NAME = "artoo-entry"
"""Of the file in memory that bubblewrap starts."""
_LAUNCHER = Path(__file__).with_name("launcher.py")
_TO_START = ("LD_LIBRARY_PATH",)
"""What a Python may need to start."""
_LISTEN, _SAY, _SIGNAL_ACTION, _EXECVE, _OPEN, _DUP, _SET_LIMIT, _CLOSE_RANGE = 0, 1, 13, 59, 257, 292, 302, 436
_RULESET, _RULE, _RESTRICT = 444, 445, 446
_WRITE, _MOVE = 1 << 1, 1 << 13
_CHILD_ENDED, _HERE, _ALL = 17, -100, 0xFFFFFFFF
_DIRECTORY = os.O_DIRECTORY | getattr(os, "O_PATH", 0) | os.O_CLOEXEC
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)
_ANY = tuple(set(range(1, 64)) - {errno.E2BIG, errno.ENOMEM})
"""A program that cannot be started is the shell's to start, or to explain; what it cannot either is not tried."""


Tell = Callable[[Sequence[str], Mapping[str, str]], None]
"""Says what to run, with which variables and no others. To be called once. Raises SandboxError."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What to start inside, the descriptors and variables that it needs, and how it is told what to run."""

    argv: tuple[str, ...]
    descriptors: tuple[int, ...]
    env: Mapping[str, str]
    tell: Tell


@contextmanager
def entered(directories: Sequence[str], limits: Limits) -> Generator[Entry, None, None]:
    """The way into the sandbox for one command, which is told later."""
    ours, theirs = socket.socketpair()
    with ours, theirs, _file("artoo-words") as words:
        here, native = theirs.fileno(), supported()
        written = program(_steps(directories, limits, here, words).part()) if native else _LAUNCHER.read_bytes()
        with run_from_memory(written, NAME) as descriptor:
            # By descriptor, for its own file may lie where the command sees something else: below a private /tmp.
            file = f"/proc/self/fd/{descriptor}"
            python = (sys.executable, "-I", "-S", file, "enter", str(here), str(words), *directories)
            tell = partial(_tell, ours, words, _in_steps if native else partial(_in_json, limits))
            env = {} if native else {name: os.environ[name] for name in _TO_START if name in os.environ}
            yield Entry((file,) if native else python, (descriptor, here, words), env, tell)


_Write = Callable[[int, Sequence[str], Mapping[str, str]], None]


def _tell(ours: socket.socket, words: int, write: _Write, argv: Sequence[str], env: Mapping[str, str]) -> None:
    try:
        write(words, argv, env)
    except (OSError, ValueError) as error:
        raise SandboxError(f"the command cannot be handed to the sandbox: {error}") from error
    with suppress(BrokenPipeError):  # it has ended, and says why itself
        ours.send(b".", socket.MSG_NOSIGNAL)


def _in_steps(words: int, argv: Sequence[str], env: Mapping[str, str]) -> None:
    steps = later()
    start(steps, argv, env)
    later_in(words, steps.part())


def _in_json(limits: Limits, words: int, argv: Sequence[str], env: Mapping[str, str]) -> None:
    os.pwrite(words, json.dumps((limited(tuple(argv), limits), dict(env))).encode(), 0)


@contextmanager
def _file(name: str) -> Generator[int, None, None]:
    """A file in memory that is nowhere."""
    descriptor = os.memfd_create(name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _steps(directories: Sequence[str], limits: Limits, here: int, words: int) -> Steps:
    steps = Steps()
    let_children_end(steps)
    restrict(steps, directories, max(here, words) + 1)
    steps.leave_room()
    bound(steps, limits)
    steps.call(_LISTEN, here, Block(bytes(8)), 1, what="what to run was not said")
    steps.call(_SAY, here, b".", 1, what="who started this is gone")
    steps.go_on_in(words)
    return steps


def let_children_end(steps: Steps) -> None:
    """Who waits for a child must not have inherited to ignore its end."""
    steps.call(_SIGNAL_ACTION, _CHILD_ENDED, Block(bytes(32)), 0, 8, what="signals")


def bound(steps: Steps, limits: Limits) -> None:
    """The limits that the kernel holds each process to."""
    for kind, most in _bounds(limits):
        steps.call(
            _SET_LIMIT, 0, kind, Block(struct.pack("<QQ", most, most)), 0, what="limits", allowed=(errno.EPERM,)
        )


def start(steps: Steps, argv: Sequence[str], env: Mapping[str, str]) -> None:
    """The command, as a child that is given no more than the first three descriptors."""
    steps.call(_CLOSE_RANGE, 3, _ALL, 0, what="close descriptors")
    steps.call(FORK, what="fork")
    words = tuple(map(os.fsencode, argv))
    variables = tuple(os.fsencode(f"{name}={value}") for name, value in env.items())
    for path in _candidates(argv[0], env.get("PATH", os.defpath)):
        steps.call(_EXECVE, os.fsencode(path), words, variables, what=argv[0], allowed=_ANY)
    shell = (b"sh", b"-c", b'"$@"; exit $?', b"sh", *words)
    steps.call(_EXECVE, b"/bin/sh", shell, variables, what="/bin/sh")


def restrict(steps: Steps, directories: Sequence[str], rules: int) -> None:
    """Files can be written in these directories only. `rules`: a descriptor's number that nobody needs."""
    handled = struct.pack("<Q", _WRITE | _MOVE)
    what = "Landlock is missing or refuses"
    steps.call(_RULESET, Block(handled), len(handled), 0, what=what)
    steps.call(_DUP, RESULT, rules, os.O_CLOEXEC, what=what, allowed=(errno.EINVAL,))
    for directory in directories:
        steps.call(_OPEN, _HERE, os.fsencode(directory), _DIRECTORY, what=f"open {directory}", allowed=_NOT_THERE)
        rule = Block(struct.pack("<Qi", _WRITE | _MOVE, -1), result_at=8)
        steps.call(_RULE, rules, 1, rule, 0, what=what, allowed=(errno.EBADF,))
    steps.call(_RESTRICT, rules, 0, what=what)


def _bounds(limits: Limits) -> Iterator[tuple[int, int]]:
    """Memory is not among them: the kernel counts as data what is only reserved (`limits`)."""
    yield resource.RLIMIT_CORE, 0
    yield resource.RLIMIT_FSIZE, limits.file_bytes
    yield resource.RLIMIT_NPROC, limits.processes


def _candidates(program: str, path: str) -> Iterator[str]:
    """Where a program may be, as a shell looks for it."""
    if "/" in program:
        yield program
    else:
        yield from (f"{directory or '.'}/{program}" for directory in path.split(":"))
