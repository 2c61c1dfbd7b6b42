"""The interface of a workspace, and the limits of a sandbox and of a command (memory, processes, disk, output).

    user's files ◄── applied once ── Workspace (upper directory on disk) ◄── commands, processes, file tools

No operation in a workspace changes the user's files before the changes are applied (SPEC section 8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from artoo.contracts.changes import Change
from artoo.contracts.events import NetworkUsed
from artoo.contracts.execution import MOST_OUTPUT_SHOWN
from artoo.contracts.settling import ClassifiedChange
from artoo.ports import printing
from artoo.ports.sandbox import Captured, Roots

BackendName = Literal["bubblewrap", "landlock", "seatbelt", "none"]
"""The methods of confining commands. `bubblewrap` uses an overlay file system. The other methods use a plain copy
of the project."""

EndStatus = Literal["ok", "error", "stopped", "killed", "disk_limit", "process_limit", "memory_limit", "refused"]
"""The ways in which a command can end. `ok` means exit code 0, and `error` means any other exit code. `stopped`
means that artoo ended the command, on request or because its time was over. `killed` means that a signal ended the
command that artoo did not send. `refused` means that the backend could not run the command."""

OnConnection = Callable[[NetworkUsed], None]
"""A callback that is called for every connection of a command that has ended or was refused. It must return quickly
and never raise."""

MIB = 1 << 20


def ignore_connection(used: NetworkUsed) -> None:
    """Ignore a connection."""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """Limits of one command. Sizes are in bytes. The whole sandbox has further limits (`SandboxLimits`).

    `kept_bytes` is the number of bytes that are kept in memory from the beginning and from the end of each stream.
    It is half of the most that is shown to a model, counted in characters of up to 4 bytes. `output_bytes` limits
    the output that is kept on disk. A command that prints more continues to run."""

    kept_bytes: int = 2 * MOST_OUTPUT_SHOWN
    output_bytes: int = 256 * MIB
    file_bytes: int = 8 * 1024 * MIB


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of a whole sandbox, for all its commands together. Sizes are in bytes.

    `processes` limits the number of processes and threads. `disk_bytes` and `paths` limit the content of the
    workspace and of its `/tmp`."""

    memory_bytes: int = 4096 * MIB
    processes: int = 1024
    disk_bytes: int = 8192 * MIB
    paths: int = 800_000


@dataclass(frozen=True, slots=True)
class Command:
    """A program to start in a workspace.

    `argv[0]` is looked up on the sandbox's PATH. If `cwd` is None, the program starts in the project directory.
    `env` is added to the cleaned environment. `keep_env` names variables that are passed to the program although
    their names look like those of secret keys. `stdin` is the whole input. If it is None, there is no input, unless
    `interactive` is true. If `interactive` is true, the input stays open, so that `Process.write` can send more. If
    `pty` is true, the program gets a pseudo-terminal, and its stdout and stderr are one stream. `hosts` contains
    the permitted destinations (`HOST:PORT`), each of which the user or a policy approved. If it is empty, the
    program has no network. `on_connection` receives the connections, and `on_output` receives the output while the
    command runs. `unconfined` is true if the user approved that exactly this program runs without confinement. Only
    backends without an overlay support this.
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
    """The result of a command. `exit_code` is None if a limit or artoo ended it. `notes` are remarks for the
    reader.

    `denied_hosts` are the hosts to which its connections were refused."""

    status: EndStatus
    exit_code: int | None
    stdout: Captured
    stderr: Captured
    duration_seconds: float
    notes: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()


class Process(Protocol):
    """A command that was started in a workspace.

    It runs until it ends or is stopped, even if no caller waits for it.
    """

    @property
    def id(self) -> str:
        """Return the id of the process in this task, such as `p3`."""
        ...

    @property
    def argv(self) -> tuple[str, ...]: ...

    @property
    def ended(self) -> Ended | None:
        """Return the result of the command; None while it runs."""
        ...

    @property
    def waits_for_input(self) -> bool:
        """Return whether each of its processes that could read the terminal or the input is blocked in such a
        read."""
        ...

    @property
    def printed(self) -> tuple[Captured, Captured]:
        """Return what the command has printed so far on stdout and on stderr."""
        ...

    def read(self, offset: int, limit: int) -> tuple[bytes, int]:
        """Return up to `limit` bytes of the output from `offset` on, and the next offset. The output contains both
        streams in the order in which they were written.

        The output is kept on disk up to `CommandLimits.output_bytes`. This method blocks.
        """
        ...

    async def background(self) -> tuple[str, ...]:
        """Return the commands that this command started in the background, and that still run after this command
        has ended."""
        ...

    async def wait(self, seconds: float | None = None) -> Ended | None:
        """Wait until the process ends, but at most for `seconds`. Return None if it still runs then. If the wait is
        cancelled, the command continues to run."""
        ...

    async def write(self, data: bytes, *, end: bool = False) -> None:
        """Send input to the command. If `end` is true, close the input afterwards. Raises SandboxError if the
        command takes no input."""
        ...

    async def stop(self, grace_seconds: float = 2.0) -> Ended:
        """End the command and all processes of its session: send SIGTERM, and after the grace period SIGKILL. A
        second call has no effect."""
        ...


class Files(Protocol):
    """The files as commands of a workspace see them. Paths are absolute. All methods block, so call them in a
    worker thread."""

    def resolve(self, path: Path) -> Path:
        """Return the path after following the links in it inside the workspace. If the end of the path does not
        exist, that end is returned unchanged.

        Raises OSError (ELOOP) for a loop of links."""
        ...

    def stat(self, path: Path) -> FileStat | None:
        """Return the file at a resolved path. If the path is a link, the link itself is returned. Return None if
        there is no file."""
        ...

    def open(self, path: Path) -> BinaryIO:
        """Open the regular file at a resolved path for reading.

        Raises OSError, also for a link anywhere in the path (ELOOP) and for anything but a regular file (EINVAL).
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
    """The metadata of a file. `size` is in bytes, the times are in nanoseconds since the epoch, and `mode` has the
    same meaning as `st_mode` in `os.stat_result`."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a command that ran in a throw-away layer, and the changes that the command made there."""

    ended: Ended
    changes: tuple[Change, ...] = ()


class Workspace(Protocol):
    """The workspace of one task. Its methods may be called concurrently, because parallel subtasks share the
    workspace."""

    @property
    def task_id(self) -> str: ...

    @property
    def backend(self) -> BackendName: ...

    @property
    def roots(self) -> Roots:
        """Return the user's directories, which have the same paths inside and outside the sandbox."""
        ...

    @property
    def files(self) -> Files:
        """Return access to the present files.

        Call this method again after each call of a tool, because another object provides this access once the
        sandbox runs."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Return remarks for the model and the user: which files commands cannot see, and which files a copy
        lacks."""
        ...

    @property
    def processes(self) -> tuple[Process, ...]:
        """List all processes of this run of the task, oldest first. Processes that have ended are included."""
        ...

    async def start(self, command: Command) -> Process:
        """Start a command in the sandbox; the first command also starts the sandbox.

        Raises SandboxError if the command cannot be confined or started."""
        ...

    async def run(self, command: Command, seconds: float) -> Ended:
        """Start a command and wait for its end. The command is stopped after `seconds`, or when the wait is
        cancelled."""
        ...

    async def try_out(self, command: Command, seconds: float) -> Trial:
        """Run a command for a check, in a throw-away layer over the workspace. Of its changes, only the files in
        /tmp remain.

        Raises SandboxError.
        """
        ...

    async def write(self, path: Path, content: bytes) -> tuple[Change, ...]:
        """Write one file atomically. Missing directories are created, and links are followed. Raises
        SandboxError."""
        ...

    async def changes_since(self, mark: Mark) -> tuple[Change, ...]:
        """Return the changes in the workspace since `mark`, in the order of the paths. Each change is described
        relative to the state at the mark."""
        ...

    async def mark(self) -> Mark:
        """Record the state of the workspace before a call. If there are many files, this reads the upper
        directory."""
        ...

    async def refresh(self) -> tuple[str, ...]:
        """Before a turn, update the workspace to the user's present files.

        Return the printable paths that both the user and the task changed since the last refresh. The workspace
        keeps the task's version of such a path, and the path will be a conflict when the changes are applied."""
        ...

    async def changes(self) -> tuple[Change, ...]:
        """Return all changes of the workspace relative to the user's files, in the order of the paths. Raises
        SandboxError."""
        ...

    async def classes(self) -> tuple[ClassifiedChange, ...]:
        """Return all changes relative to the user's files, each with the class that it would have at the end of the
        task. Raises SandboxError."""
        ...

    async def fork(self, name: str) -> Workspace:
        """Copy the workspace, so that a second solution can be tried whose changes are never applied.

        Raises SandboxError if the workspace is too large. If a crash has left a fork of this name, that fork is
        discarded first. The fork has its own sandbox."""
        ...

    async def discard_fork(self, name: str) -> None:
        """Stop the processes of a fork and delete the fork. A second call has no effect."""
        ...

    async def stop_processes(self) -> tuple[Process, ...]:
        """Stop all processes that still run, and return them. Call this method before the changes are read."""
        ...

    async def close(self) -> None:
        """Stop all processes, end the sandbox and release the lock, so that another process may continue. A second
        call has no effect."""
        ...


class Mark(Protocol):
    """A state of the workspace at one moment (`Workspace.mark`)."""


class OpenWorkspace(Protocol):
    """A function that opens the workspace of a task. It creates no files; the first command or write does."""

    def __call__(self, task_id: str, roots: Roots, /) -> Workspace: ...
