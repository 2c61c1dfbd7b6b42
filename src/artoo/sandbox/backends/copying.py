"""The backend over plain copies, for Landlock, seatbelt or no confinement, with paths translated in output.

Commands work in plain copies of the user's directories. They are confined by Landlock, by seatbelt, or not at all.

    artoo ──► supervisor ──► commands, each confined to the copies; no network
                        └──► commands that the user approved as unconfined

The supervisor itself is not confined. It confines each command before it runs (Landlock), or starts it through a
program that confines it (seatbelt).
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import BackendName, Command, EndStatus, Process
from artoo.sandbox.limits import seccomp
from artoo.sandbox.limits.cgroup import Group
from artoo.sandbox.limits.monitor import machine_tasks
from artoo.sandbox.network.command_proxy import no_network_environment
from artoo.sandbox.output import Output, StreamName
from artoo.sandbox.protocols import Layout
from artoo.sandbox.reading.environment import QUIET, cleaned
from artoo.sandbox.reading.hidden_paths import hidden_paths
from artoo.sandbox.reading.programs import find_program, worked_in
from artoo.sandbox.reading.readable_settings import lay_git_extract
from artoo.sandbox.supervisor.living import Launched, LivingSandbox, launch, opened
from artoo.sandbox.supervisor.process import SandboxProcess
from artoo.sandbox.supervisor.starting import CONFINING_SUPERVISOR, SUPERVISOR

_SHARED_TEMPORARY = ("/tmp", "/var/tmp")
_NO_START = rb"(?:(?<![\w.~/-])|(?<=[\s:=,'\"(]-[A-Za-z])|(?<=^-[A-Za-z])|(?<=://))"
"""Matches the position at which a path begins in a text. The path must not be a part of a longer path, but the path
in an option such as `-I/path` counts."""
_NO_END = rb"(?![\w.@%+~-])"


@dataclass(frozen=True, slots=True)
class PathMap:
    """Pairs of a real directory and its copy, outermost last. `scratch` is the directory that replaces /tmp and
    /var/tmp."""

    copies: tuple[tuple[str, str], ...]
    scratch: str

    @classmethod
    def of(cls, layout: Layout) -> PathMap:
        copies = sorted(((str(real), str(copy)) for real, copy in layout.copies), key=lambda pair: -len(pair[0]))
        return cls(tuple(copies), str(layout.scratch))

    def inside(self, path: Path) -> Path:
        """Return the path under which commands find the user's `path`."""
        return Path(self._moved(str(path)))

    def translate(self, text: str) -> str:
        """Replace the real paths in the text of a command, such as a script, by the paths of the copies."""
        names = (*(real for real, _ in self.copies), *_SHARED_TEMPORARY)
        if not any(name in text for name in names):
            return text
        tree = b"|".join(re.escape(os.fsencode(name)) for name in names)
        path = re.compile(_NO_START + b"(?:" + tree + b")" + _NO_END + rb"(?:/[^\s'\"`;&|<>()$*?\[\]{}:,]*)?")
        moved = path.sub(lambda found: os.fsencode(self._moved(os.fsdecode(found[0]))), os.fsencode(text))
        return os.fsdecode(moved)

    def _moved(self, path: str) -> str:
        for real, copy in self.copies:
            if path == real or path.startswith(real + "/"):
                return copy + path[len(real) :]
        for shared in _SHARED_TEMPORARY:
            if path == shared or path.startswith(shared + "/"):
                own = self.scratch + path[len(shared) :]
                # A file that exists only in the user's /tmp, such as a log or a program, keeps its path.
                name = path[len(shared) :].lstrip("/").partition("/")[0]
                is_users = bool(name) and os.path.lexists(f"{shared}/{name}")
                return path if is_users and not os.path.lexists(f"{self.scratch}/{name}") else own
        return path


class TranslatedOutput(Output):
    """The output of a command that works in copies. In it, the paths of the copies are replaced by the user's
    paths.

    If a path is split over two chunks of output, it is not replaced. This does no harm, because file tools also
    accept the path of the copy.
    """

    def __init__(self, path: Path, command: Command, paths: PathMap) -> None:
        super().__init__(path, command.limits, command.on_output)
        pairs = (*paths.copies, (_SHARED_TEMPORARY[0], paths.scratch))
        self._shown = {os.fsencode(place): os.fsencode(real) for real, place in pairs}
        self._places = re.compile(b"|".join(map(re.escape, self._shown)))

    def add(self, data: bytes, stream: StreamName = "stdout") -> None:
        """Append output of the command, with translated paths, to a stream."""
        super().add(self._places.sub(lambda found: self._shown[found[0]], data), stream)


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
        """Always False, because the workspace makes copies instead."""
        return False

    def roots_to_cover(self, roots: Roots) -> tuple[Path, ...]:
        """Return no roots, because no overlay can be mounted."""
        return ()

    async def open(self, layout: Layout) -> CopySandbox:
        """Start a sandbox. Raises SandboxError."""
        prefix: list[str] = []
        start, sandbox = partial(self._launch, layout, prefix), partial(CopySandbox, self.name, prefix, layout)
        return await opened(layout, _written(layout), start, sandbox)

    def _launch(self, layout: Layout, prefix: list[str], group: Group | None) -> Launched:
        """Start the supervisor. The words that start a program confined by seatbelt are added to `prefix`.
        Blocking."""
        layout.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = _written(layout)
        env = lay_git_extract(layout.roots, layout.scratch, str(layout.scratch))
        # The kernel counts all processes and threads of the user, so the number that the machine has now is added
        # to the limit.
        options = [f"process-limit={layout.limits.processes + (machine_tasks() or 4096)}"]
        files: dict[str, bytes] = {}
        if self.name == "seatbelt":
            prefix += _sandbox_exec(_hidden(layout), written, worked_in(layout.roots))
        elif self.name == "landlock":
            files["confinement"] = json.dumps(_confinement(_hidden(layout), written)).encode()
        modules = CONFINING_SUPERVISOR if files else SUPERVISOR
        process, ours, complaints = launch(modules, options, files, group)
        return Launched(process, ours, complaints, written, env)


def _hidden(layout: Layout) -> tuple[Path, ...]:
    written = _written(layout)
    return tuple(map(Path, hidden_paths(layout.roots, layout.artoo_home, visible=written)))


def _written(layout: Layout) -> tuple[Path, ...]:
    return (*(copy for _, copy in layout.copies), layout.scratch)


class CopySandbox(LivingSandbox):
    """The sandbox over a workspace that is a plain copy."""

    def __init__(
        self, backend: BackendName, prefix: Sequence[str], layout: Layout, launched: Launched, group: Group | None
    ) -> None:
        super().__init__(layout, launched, group)
        self._backend: BackendName = backend
        self._prefix = tuple(prefix)
        self._paths = PathMap.of(layout)

    async def start(self, command: Command, process_id: str, output: Path) -> Process:
        """Start a command. If it must not run, return a process that has ended as `refused`. Raises
        SandboxError."""
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
        """Return the environment variables of a command, which contain the paths of the copies."""
        roots, scratch = self.layout.roots, str(self.layout.scratch)
        own = {name: scratch + value[len("/tmp") :] for name, value in QUIET.items() if value.startswith("/tmp")}
        network = {} if command.unconfined else no_network_environment()
        outer = {name: value for name, value in os.environ.items() if name not in own}
        env = cleaned(outer, roots, command.keep_env) | own | dict(self.launched.env) | network | dict(command.env)
        # Otherwise git in a copy could find a repository that contains artoo's home, such as one for the user's
        # dotfiles.
        above = (env.get(_CEILINGS), *(str(copy.parent) for _, copy in self.layout.copies))
        env[_CEILINGS] = ":".join(dict.fromkeys(filter(None, above)))  # no repository contains artoo's home
        return {name: self._paths.translate(value) for name, value in env.items()} | {"PWD": str(cwd)}


class CopyProcess(SandboxProcess):
    """The process of a command in a copy. If the command fails, the process decides whether the sandbox has refused
    something."""

    def refuse(self, why: str) -> None:
        """End the process as refused without starting the command."""
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
    """Return the supervisor's plan for confining a command. With it, a command can change only `writable` and
    cannot read `hidden`. Blocking."""
    return {
        "readable": [*readable_around((*hidden, Path("/dev"))), *_SOURCES],
        "writable": list(map(str, writable)),
        "devices": list(_DEVICES),
        "steps": seccomp.filter_program(without_namespaces=True).hex(),
        "calls": seccomp.judged(),
    }


def readable_around(hidden: tuple[Path, ...]) -> Iterator[str]:
    """Yield the largest directory trees that contain no hidden path. Landlock can only allow access to trees, not
    deny it within them.

    Directories that contain a hidden path are compared by inode, so that such a directory is not allowed under
    another name.
    """
    opened = {Path("/")} | {ancestor for path in hidden for ancestor in path.parents}
    around = {None, *map(_identity, opened)}
    for directory in sorted(opened):
        try:
            children = sorted(directory.iterdir())
        except OSError:  # the user cannot read the directory, so commands cannot read it either
            continue
        for child in children:
            if child not in opened and child not in hidden and _identity(child) not in around:
                yield str(child)


def _identity(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a path, or None for a link or a path that was removed meanwhile."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return None if stat.S_ISLNK(status.st_mode) else (status.st_dev, status.st_ino)


# --- seatbelt ----------------------------------------------------------------------------------------------------


def _sandbox_exec(hidden: tuple[Path, ...], writable: tuple[Path, ...], apart: tuple[str, ...]) -> list[str]:
    """Return the command prefix that confines a program. Raises SandboxError if `sandbox-exec` is missing."""
    program = find_program("sandbox-exec", apart)
    if program is None:
        raise SandboxError("cannot start the sandbox: sandbox-exec is not on your PATH; run: artoo doctor")
    return [program, "-p", profile(writable, hidden)]


def profile(writable: tuple[Path, ...], hidden: tuple[Path, ...]) -> str:
    """Return a profile in Apple's sandbox language. Files are read-only, and there is no network and no access to
    services.

    Signals to other processes of the same sandbox are allowed, so that a shell can end its children.
    """
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny network*)",
        "(deny file-write*)",
        "(deny appleevent-send)",
        "(deny mach-lookup)",
        '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
        '(allow mach-lookup (global-name "com.apple.system.logger"))',
        "(deny signal)",
        "(allow signal (target self) (target children) (target same-sandbox))",
        "(deny process-info* (target others))",
        *(f"(allow file-write* (subpath {_quoted(path)}))" for path in writable),
        *(f'(allow file-write-data (literal "{device}"))' for device in _DEVICES),
        *(f"(deny file-read* (subpath {_quoted(path)}))" for path in hidden if not _holds(path, writable)),
        *(rule for path in hidden if _holds(path, writable) for rule in _closed_around(path, writable)),
    ]
    return "\n".join(lines) + "\n"


def _closed_around(hidden: Path, writable: tuple[Path, ...]) -> list[str]:
    """Deny reading a directory, except the writable paths in it. This order matters because the last matching rule
    of a profile applies."""
    inner = [path for path in writable if path.is_relative_to(hidden)]
    ways = {above for path in inner for above in path.parents if above.is_relative_to(hidden)}
    return [
        f"(deny file-read* (subpath {_quoted(hidden)}))",
        *(f"(allow file-read-metadata (literal {_quoted(way)}))" for way in sorted(ways)),
        *(f"(allow file-read* (subpath {_quoted(path)}))" for path in inner),
    ]


def _holds(path: Path, inner: tuple[Path, ...]) -> bool:
    return any(one.is_relative_to(path) for one in inner)


def _quoted(path: Path) -> str:
    text = str(path)
    if any(ord(character) < 32 for character in text):
        raise SandboxError(f"{path!r} contains control characters, which a seatbelt profile cannot name: rename it")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
