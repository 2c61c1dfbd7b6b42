"""Define the port to the user's files of a task: one copy-on-write workspace with one living sandbox.

    user's files ◄── settled once ── Workspace (upper directory on disk) ◄── commands, processes, file tools

Nothing that happens in a workspace changes the user's files before settlement (SPEC section 8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from artoo.contracts.changes import Change
from artoo.contracts.network import NetworkUsed
from artoo.contracts.settling import ClassifiedChange
from artoo.ports import printing
from artoo.ports.sandbox import Captured, Roots

BackendName = Literal["bubblewrap", "landlock", "seatbelt", "none"]
"""The ways to confine commands. `bubblewrap` has an overlay; the others work in a plain copy of the project."""

EndStatus = Literal["ok", "error", "stopped", "killed", "disk_limit", "process_limit", "memory_limit", "refused"]
"""How a command ended: `ok` is exit code 0, `error` any other. `stopped`: artoo ended it on request or at the end
of its time. `killed`: a signal that artoo did not send. `refused`: the backend could not run it."""

OnConnection = Callable[[NetworkUsed], None]
"""Receives every connection of a command when it has ended, and every refused one. Fast, never raises."""

MIB = 1 << 20


def ignore_connection(used: NetworkUsed) -> None:
    """Ignore a connection."""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """Limits of one command. Sizes in bytes. The sandbox as a whole has limits of its own (`SandboxLimits`).

    `output_bytes`: how much of its output is kept on disk; the command goes on when it prints more.
    """

    kept_bytes: int = 64 * 1024
    output_bytes: int = 256 * MIB
    file_bytes: int = 8 * 1024 * MIB


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of a sandbox as a whole, over all commands in it. Sizes in bytes.

    `processes` counts threads too. `disk_bytes` and `paths` count what the workspace holds, its `/tmp` included.
    """

    memory_bytes: int = 4096 * MIB
    processes: int = 1024
    disk_bytes: int = 8192 * MIB
    paths: int = 800_000


@dataclass(frozen=True, slots=True)
class Command:
    """A program to start in a workspace.

    `argv[0]` is looked up on the sandbox's PATH. `cwd` None is the project. `env` is added to the cleaned
    environment; `keep_env` names variables that pass although they look like keys. `stdin` is its whole input
    (None: no input, unless `interactive`). `interactive` keeps its input open for `Process.write`. `pty` gives it a
    pseudo-terminal (stdout and stderr are one stream then). `hosts`: where it may connect (`HOST:PORT`), each
    approved by the user or a policy; empty: no network. `on_connection` receives its connections, `on_output` what
    it prints while it runs. `unconfined`: the user approved exactly this program to run without confinement; only
    backends without an overlay honour it.
    """

    argv: tuple[str, ...]
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    keep_env: frozenset[str] = frozenset()
    stdin: bytes | None = None
    interactive: bool = False
    pty: bool = False
    hosts: tuple[str, ...] = ()
    on_connection: OnConnection = ignore_connection
    on_output: printing.Heard = printing.unheard
    limits: CommandLimits = field(default_factory=CommandLimits)
    unconfined: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command. `exit_code` is None where a limit or artoo ended it. `notes` are facts for the reader.

    `denied_hosts`: the hosts that it tried to reach and may not.
    """

    status: EndStatus
    exit_code: int | None
    stdout: Captured
    stderr: Captured
    duration_seconds: float
    notes: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()


class Process(Protocol):
    """A command that was started in a workspace.

    It goes on until it ends or is stopped, also if no caller waits.
    """

    @property
    def id(self) -> str:
        """Return the id of the process in this task, such as `p3`."""
        ...

    @property
    def argv(self) -> tuple[str, ...]: ...

    @property
    def ended(self) -> Ended | None:
        """Return the end of the command; None while it runs."""
        ...

    @property
    def waits_for_input(self) -> bool:
        """Check whether all its processes that could read its terminal or input are asleep in a read of it."""
        ...

    @property
    def printed(self) -> tuple[Captured, Captured]:
        """Return the output so far: stdout, stderr."""
        ...

    def read(self, offset: int, limit: int) -> tuple[bytes, int]:
        """Return up to `limit` bytes of its output (both streams as they came) from `offset`, and the next offset.

        The output is kept on disk up to `CommandLimits.output_bytes`. Blocking.
        """
        ...

    async def background(self) -> tuple[str, ...]:
        """Return the commands that it left running in the background when it ended, and that still run."""
        ...

    async def wait(self, seconds: float | None = None) -> Ended | None:
        """Wait until it has ended, at most `seconds`. Return None if it still runs; cancelling stops nothing."""
        ...

    async def write(self, data: bytes, *, end: bool = False) -> None:
        """Send input, and close the input after it if `end`. Raises SandboxError if it takes none."""
        ...

    async def stop(self, grace_seconds: float = 2.0) -> Ended:
        """End it and all processes of its session: SIGTERM, then SIGKILL after the grace. Idempotent."""
        ...


class Files(Protocol):
    """The files as commands of a workspace see them. Paths are absolute. All methods block: use a thread."""

    def resolve(self, path: Path) -> Path:
        """Return the path with links followed as inside the workspace; a missing rest keeps its name.

        Raises OSError (ELOOP) for a circle.
        """
        ...

    def stat(self, path: Path) -> FileStat | None:
        """Return what is at a resolved path, without following a last link; None when nothing is there."""
        ...

    def open(self, path: Path) -> BinaryIO:
        """Open the regular file at a resolved path for reading.

        Raises OSError; a link anywhere in the path is one (ELOOP), and so is what is no regular file (EINVAL).
        """
        ...

    def readlink(self, path: Path) -> Path:
        """Return the target of the link at a path whose parent is resolved. Raises OSError."""
        ...

    def names(self, directory: Path) -> tuple[str, ...]:
        """Return the names in a resolved directory, sorted by their bytes. Raises OSError as os.listdir does."""
        ...


@dataclass(frozen=True, slots=True)
class FileStat:
    """The file at a path. `size` in bytes; times in nanoseconds since the epoch; `mode` as `stat.st_mode`."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


@dataclass(frozen=True, slots=True)
class Trial:
    """The end of a command in a throw-away layer, and the changes that it would have made."""

    ended: Ended
    changes: tuple[Change, ...] = ()


class Workspace(Protocol):
    """One task's workspace. Methods may be called concurrently; parallel subtasks share it."""

    @property
    def task_id(self) -> str: ...

    @property
    def backend(self) -> BackendName: ...

    @property
    def roots(self) -> Roots:
        """Return the user's directories, as they are named outside and inside."""
        ...

    @property
    def files(self) -> Files:
        """Return the files as they are now.

        Ask again after a call, because another object has them once the sandbox runs.
        """
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Return facts for model and user: files that commands cannot see, and files that a copy does not hold."""
        ...

    @property
    def processes(self) -> tuple[Process, ...]:
        """List all processes of this run of the task, oldest first, ended ones included."""
        ...

    async def start(self, command: Command) -> Process:
        """Start a command in the living sandbox; the first one starts the sandbox.

        Raises SandboxError when it cannot be confined or started.
        """
        ...

    async def run(self, command: Command, seconds: float) -> Ended:
        """Start a command, wait for it, and stop it after `seconds` or when cancelled."""
        ...

    async def try_out(self, command: Command, seconds: float) -> Trial:
        """Run a command in a throw-away layer over the workspace (for checks); nothing of it stays but in /tmp.

        Raises SandboxError.
        """
        ...

    async def write(self, path: Path, content: bytes) -> tuple[Change, ...]:
        """Write one file atomically, making directories as needed; links are followed. Raises SandboxError."""
        ...

    async def changes_since(self, mark: Mark) -> tuple[Change, ...]:
        """Return what changed in the workspace since `mark`, in path order, each against its state at the mark."""
        ...

    async def mark(self) -> Mark:
        """Remember the state of the workspace, before a call. With many files this reads the upper directory."""
        ...

    async def refresh(self) -> tuple[str, ...]:
        """Show the user's files as they are now, before a turn.

        Return printable paths that both sides changed since the last refresh: the task's version stays, and the
        path will be a conflict.
        """
        ...

    async def changes(self) -> tuple[Change, ...]:
        """Return all that the workspace changes against the user's files, in path order. Raises SandboxError."""
        ...

    async def classes(self) -> tuple[ClassifiedChange, ...]:
        """Return what these changes mean for the user, judged as at settlement. Raises SandboxError."""
        ...

    async def fork(self, name: str) -> Workspace:
        """Copy the workspace for a second solution, which is never settled.

        Raises SandboxError when it is too large. A fork of this name that a crash left is discarded first. The
        fork has a sandbox of its own.
        """
        ...

    async def discard_fork(self, name: str) -> None:
        """Stop and delete a fork. Idempotent."""
        ...

    async def stop_processes(self) -> tuple[Process, ...]:
        """Stop all processes that still run, and return them: before the change set is read."""
        ...

    async def close(self) -> None:
        """Stop everything, end the sandbox and release the lock, so that another process may go on. Idempotent."""
        ...


class Mark(Protocol):
    """A state of the workspace at one moment (`Workspace.mark`)."""


class OpenWorkspace(Protocol):
    """Opens the workspace of a task; nothing is made on disk before its first command or write."""

    def __call__(self, task_id: str, roots: Roots, /) -> Workspace: ...
