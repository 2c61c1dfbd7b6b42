"""Sandboxes without an overlay: commands work in plain copies, held by Landlock, by seatbelt, or by nothing.

    artoo ──► supervisor ──► commands, each confined to the copies; no network
                        └──► commands that the user approved as unconfined

The supervisor itself is not confined. It confines each command before it runs (Landlock), or starts it by a program
that does (seatbelt).
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.ports.workspace import BackendName, Command, EndStatus, Process
from artoo.sandbox.backends import seatbelt
from artoo.sandbox.backends.copy_layout import PathMap, TranslatedOutput
from artoo.sandbox.limits import seccomp
from artoo.sandbox.limits.cgroup import Group
from artoo.sandbox.limits.monitor import machine_tasks
from artoo.sandbox.network.command_proxy import no_network_environment
from artoo.sandbox.protocols import Layout
from artoo.sandbox.reading.environment import QUIET, cleaned
from artoo.sandbox.reading.hidden_paths import hidden_paths
from artoo.sandbox.reading.programs import worked_in
from artoo.sandbox.reading.readable_settings import lay_git_extract
from artoo.sandbox.supervisor.living import Launched, LivingSandbox, opened, started
from artoo.sandbox.supervisor.process import SandboxProcess
from artoo.sandbox.supervisor.starting import (
    CONFINING_SUPERVISOR,
    SUPERVISOR,
    file_of,
    program_file,
    python_running,
)

UNCONFINED = "ran without confinement in the copy of the project, after an approval"
NO_BACKEND = "nothing on this machine confines commands, so each one needs an approval; artoo doctor says why"
NO_NETWORK = (
    "this sandbox ({}) cannot open single hosts: the command needs an approval to run without confinement; "
    "artoo doctor says how to get a better sandbox"
)
REFUSED = "the sandbox refused it something: it can run without confinement after an approval"

_REFUSED_BY_SYSTEM = re.compile(
    rb"permission denied|operation not permitted|read-only file system|EACCES|EPERM|EROFS", re.I
)
_CEILINGS = "GIT_CEILING_DIRECTORIES"


@dataclass(frozen=True, slots=True)
class CopyBackend:
    """Implements `protocols.Backend` for a workspace that is a plain copy."""

    name: BackendName

    @property
    def has_overlay(self) -> bool:
        """False: the workspace makes the copies."""
        return False

    def roots_to_cover(self, roots: Roots) -> tuple[Path, ...]:
        """Return nothing: no overlay can be mounted."""
        return ()

    async def open(self, layout: Layout) -> CopySandbox:
        """Start a sandbox. Raises SandboxError."""
        prefix: list[str] = []
        launch, sandbox = partial(self._launch, layout, prefix), partial(CopySandbox, self.name, prefix, layout)
        return await opened(layout, _written(layout), launch, sandbox)

    def _launch(self, layout: Layout, prefix: list[str], group: Group | None) -> Launched:
        """Start the supervisor. `prefix` takes the words that confine a program (seatbelt). Blocking."""
        layout.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = _written(layout)
        env = lay_git_extract(layout.roots, layout.scratch, str(layout.scratch))
        # macOS has no packets with borders on a connected stream.
        kind = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
        # The kernel counts all processes and threads of a user, which are at most those of the machine.
        options = [f"process-limit={layout.limits.processes + (machine_tasks() or 4096)}"]
        with ExitStack() as opened:
            ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
            opened.callback(theirs.close)
            modules = CONFINING_SUPERVISOR if self.name == "landlock" else SUPERVISOR
            program = opened.enter_context(program_file(modules)).fileno()
            given = [program, theirs.fileno()]
            if self.name == "seatbelt":
                prefix += seatbelt.prefix(_hidden(layout), written, worked_in(layout.roots))
            elif self.name == "landlock":
                plan = json.dumps(_confinement(_hidden(layout), written)).encode()
                given.append(opened.enter_context(file_of(plan)).fileno())
                options.append(f"confinement={given[-1]}")
            argv = python_running(program, str(theirs.fileno()), *options)
            process, complaints = started(argv, group, given)
        return Launched(process, ours, complaints, written, env)


def _hidden(layout: Layout) -> tuple[Path, ...]:
    written = _written(layout)
    return tuple(map(Path, hidden_paths(layout.roots, layout.artoo_home, layout.hide, visible=written)))


def _written(layout: Layout) -> tuple[Path, ...]:
    return (*(copy for _, copy in layout.copies), layout.scratch)


class CopySandbox(LivingSandbox):
    """A sandbox over a workspace that is a plain copy."""

    def __init__(
        self, backend: BackendName, prefix: Sequence[str], layout: Layout, launched: Launched, group: Group | None
    ) -> None:
        super().__init__(layout, launched, group)
        self._backend: BackendName = backend
        self._prefix = tuple(prefix)
        self._paths = PathMap.of(layout)

    async def start(self, command: Command, process_id: str, output: Path) -> Process:
        """Start a command, or return one that has ended as `refused`. Raises SandboxError."""
        translated = TranslatedOutput(output, command, self._paths)
        process = CopyProcess(self.client, process_id, command, translated, watch=self.watch)
        if not command.unconfined and (self._backend == "none" or command.hosts):
            process.refuse(NO_BACKEND if self._backend == "none" else NO_NETWORK.format(self._backend))
            return process
        argv = tuple(map(self._paths.translate, command.argv))
        cwd = self._paths.inside(command.cwd or self.layout.roots.project)
        prefix, mode = ((), "-unconfined") if command.unconfined else (self._prefix, "")
        return await self.run(process, (*prefix, *argv), self._environment(command, cwd), cwd, mode)

    def _environment(self, command: Command, cwd: Path) -> dict[str, str]:
        """Return the variables of a command, with the copies' paths."""
        roots, scratch = self.layout.roots, str(self.layout.scratch)
        own = {name: scratch + value[len("/tmp") :] for name, value in QUIET.items() if value.startswith("/tmp")}
        network = {} if command.unconfined else no_network_environment()
        outer = {name: value for name, value in os.environ.items() if name not in own}
        env = cleaned(outer, roots, command.keep_env) | own | dict(self.launched.env) | network | dict(command.env)
        above = (env.get(_CEILINGS), *(str(copy.parent) for _, copy in self.layout.copies))
        env[_CEILINGS] = ":".join(dict.fromkeys(filter(None, above)))  # artoo's home is in no repository
        return {name: self._paths.translate(value) for name, value in env.items()} | {"PWD": str(cwd)}


class CopyProcess(SandboxProcess):
    """A command of which what the sandbox refused is told apart from its own failures."""

    def refuse(self, why: str) -> None:
        """End it before it was started."""
        self._reason = "refused"
        self._notes.append(why)
        self._on_end(0, ())

    def _how(self) -> tuple[EndStatus, int | None]:
        status, exit_code = super()._how()
        if self._command.unconfined:
            self._notes.append(UNCONFINED)
        if status != "error" or self._command.unconfined:
            return status, exit_code
        printed = self.printed[0] if self._command.pty else self.printed[1]
        if not _REFUSED_BY_SYSTEM.search(printed.head + printed.tail):
            return status, exit_code
        self._notes.append(REFUSED)
        return "refused", exit_code


# --- Landlock ----------------------------------------------------------------------------------------------------

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
_SOURCES = ("/dev/random", "/dev/urandom")


def _confinement(hidden: tuple[Path, ...], writable: tuple[Path, ...]) -> dict[str, object]:
    """Return the plan of the supervisor: only `writable` can be changed, and `hidden` cannot be read. Blocking."""
    return {
        "readable": [*readable_around((*hidden, Path("/dev"))), *_SOURCES],
        "writable": list(map(str, writable)),
        "devices": list(_DEVICES),
        "steps": seccomp.filter_program(without_namespaces=True).hex(),
        "calls": seccomp.judged(),
    }


def readable_around(hidden: tuple[Path, ...]) -> Iterator[str]:
    """Return the largest trees that contain nothing hidden, because Landlock can only allow.

    A directory that contains something hidden is known by its identity: no other name allows it either.
    """
    opened = {Path("/")} | {ancestor for path in hidden for ancestor in path.parents}
    around = {None, *map(_identity, opened)}
    for directory in sorted(opened):
        try:
            children = sorted(directory.iterdir())
        except OSError:  # not readable for the user, so not for the command
            continue
        for child in children:
            if child not in opened and child not in hidden and _identity(child) not in around:
                yield str(child)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from all others; None for a link, and for what was removed meanwhile."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return None if stat.S_ISLNK(status.st_mode) else (status.st_dev, status.st_ino)
