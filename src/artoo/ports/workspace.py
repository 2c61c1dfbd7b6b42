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
"""The methods of confining commands. `bubblewrap` uses an overlay, the others a plain copy of the project."""

EndStatus = Literal["ok", "error", "stopped", "killed", "disk_limit", "process_limit", "memory_limit", "refused"]
"""The possible ends of a command: `ok` is exit code 0, `error` any other. `stopped`: artoo ended it on request or
after a timeout. `killed`: by a signal that artoo did not send. `refused`: the backend could not run it."""

OnConnection = Callable[[NetworkUsed], None]
"""A callback for every ended or refused connection of a command. It must return quickly and never raise."""

MIB = 1 << 20


def ignore_connection(used: NetworkUsed) -> None:
    """Ignore a connection."""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """Limits of one command. Sizes are in bytes. The whole sandbox has further limits (`SandboxLimits`).

    `kept_bytes` are kept in memory of each end of a stream: half of what a model is shown at most, in characters of
    up to 4 bytes. `output_bytes` limits the output that is kept on disk; a command that prints more continues to
    run."""

    kept_bytes: int = 2 * MOST_OUTPUT_SHOWN
    output_bytes: int = 256 * MIB
    file_bytes: int = 8 * 1024 * MIB


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of a whole sandbox, for all its commands together. Sizes are in bytes.

    `processes` counts threads too. `disk_bytes` and `paths` limit the content of the workspace and of its
    `/tmp`."""

    memory_bytes: int = 4096 * MIB
    processes: int = 1024
    disk_bytes: int = 8192 * MIB
    paths: int = 800_000


@dataclass(frozen=True, slots=True)
class Command:
    """A program to start in a workspace.

    `argv[0]` is looked up on the sandbox's PATH. `cwd` None means the project. `env` is added to the cleaned
    environment; `keep_env` names variables that are passed although they look like keys. `stdin` is the whole
    input (None: no input, unless `interactive`). `interactive` keeps the input open for `Process.write`. `pty`
    provides a pseudo-terminal (stdout and stderr are then one stream). `hosts` are the permitted destinations
    (`HOST:PORT`), each approved by the user or a policy; if empty, there is no network. `on_connection` receives
    the connections, `on_output` the output while the command runs. `unconfined`: the user approved exactly this
    program to run without confinement; only backends without an overlay honour it.
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
        """Check whether all its processes that could read its terminal or input are blocked in such a read."""
        ...

    @property
    def printed(self) -> tuple[Captured, Captured]:
        """Return the output so far: stdout, stderr."""
        ...

    def read(self, offset: int, limit: int) -> tuple[bytes, int]:
        """Return up to `limit` bytes of its output (both streams interleaved) from `offset`, and the next offset.

        The output is kept on disk up to `CommandLimits.output_bytes`. Blocking.
        """
        ...

    async def background(self) -> tuple[str, ...]:
        """Return the background commands that the command left behind when it ended and that still run."""
        ...

    async def wait(self, seconds: float | None = None) -> Ended | None:
        """Wait for the end, at most `seconds`. Return None if it still runs. Cancelling does not stop the
        command."""
        ...

    async def write(self, data: bytes, *, end: bool = False) -> None:
        """Send input, and then close the input if `end`. Raises SandboxError if the command takes no input."""
        ...

    async def stop(self, grace_seconds: float = 2.0) -> Ended:
        """End the command and all processes of its session: SIGTERM, then SIGKILL after the grace. Idempotent."""
        ...


class Files(Protocol):
    """The files as commands of a workspace see them. Paths are absolute. All methods block, so use a thread."""

    def resolve(self, path: Path) -> Path:
        """Return the path with links followed inside the workspace; a missing rest of the path stays unchanged.

        Raises OSError (ELOOP) for a loop of links."""
        ...

    def stat(self, path: Path) -> FileStat | None:
        """Return the file at a resolved path, without following a final link; None if there is no file."""
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
    """The metadata of a file. `size` is in bytes, times in nanoseconds since the epoch, `mode` as
    `stat.st_mode`."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a command in a throw-away layer, and the changes that it would have made."""

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
        """Return the user's directories, which have the same paths inside and outside the sandbox."""
        ...

    @property
    def files(self) -> Files:
        """Return access to the present files.

        Get it again after each call, because another object provides it once the sandbox runs."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Return remarks for model and user: files that commands cannot see, and files that a copy lacks."""
        ...

    @property
    def processes(self) -> tuple[Process, ...]:
        """List all processes of this run of the task, including ended ones, oldest first."""
        ...

    async def start(self, command: Command) -> Process:
        """Start a command in the sandbox; the first command also starts the sandbox.

        Raises SandboxError if the command cannot be confined or started."""
        ...

    async def run(self, command: Command, seconds: float) -> Ended:
        """Start a command, wait for it, and stop it after `seconds` or when cancelled."""
        ...

    async def try_out(self, command: Command, seconds: float) -> Trial:
        """Run a command in a throw-away layer over the workspace (for checks). Only its files in /tmp remain.

        Raises SandboxError.
        """
        ...

    async def write(self, path: Path, content: bytes) -> tuple[Change, ...]:
        """Write one file atomically, creating directories as needed and following links. Raises SandboxError."""
        ...

    async def changes_since(self, mark: Mark) -> tuple[Change, ...]:
        """Return the changes in the workspace since `mark`, in path order, relative to the state at the mark."""
        ...

    async def mark(self) -> Mark:
        """Record the state of the workspace, before a call. With many files this reads the upper directory."""
        ...

    async def refresh(self) -> tuple[str, ...]:
        """Update the workspace to the user's present files, before a turn.

        Return the printable paths that both the user and the task changed since the last refresh. The task's
        version stays in the workspace, and the path will be a conflict."""
        ...

    async def changes(self) -> tuple[Change, ...]:
        """Return all changes of the workspace relative to the user's files, in path order. Raises SandboxError."""
        ...

    async def classes(self) -> tuple[ClassifiedChange, ...]:
        """Return these changes with the classes that they would have at the end of the task. Raises
        SandboxError."""
        ...

    async def fork(self, name: str) -> Workspace:
        """Copy the workspace for a second solution, whose changes are never applied.

        Raises SandboxError if the workspace is too large. A fork of this name that a crash left is discarded
        first. The fork has its own sandbox."""
        ...

    async def discard_fork(self, name: str) -> None:
        """Stop and delete a fork. Idempotent."""
        ...

    async def stop_processes(self) -> tuple[Process, ...]:
        """Stop all processes that still run, and return them. Call this before reading the changes."""
        ...

    async def close(self) -> None:
        """Stop all processes, end the sandbox and release the lock, so that another process may continue.
        Idempotent."""
        ...


class Mark(Protocol):
    """A state of the workspace at one moment (`Workspace.mark`)."""


class OpenWorkspace(Protocol):
    """A function that opens the workspace of a task; it creates no files before the first command or write."""

    def __call__(self, task_id: str, roots: Roots, /) -> Workspace: ...
