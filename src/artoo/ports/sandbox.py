"""What contains a command, and what is said of one command's run (SPEC section 8, Law 1).

Commands of tasks run in views (`ports.world`); a `Sandbox` itself only looks: nothing of a look stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from artoo.contracts.changes import Change
from artoo.contracts.network import NetworkUsed
from artoo.ports import printing

RunStatus = Literal[
    "ok",
    "error",
    "timeout",
    "interrupted",
    "killed",
    "output_limit",
    "disk_limit",
    "process_limit",
    "memory_limit",
    "refused",
]
"""How a run ended. Only `ok` (exit code 0) may be read as done, and only once its changes are applied."""

TierName = Literal["bubblewrap", "namespaces", "landlock", "seatbelt", "none"]

MIB = 1 << 20

Heard = Callable[[NetworkUsed], None]
"""Hears of every connection of a command when it has ended, and of every refused one. Quick, never raises."""


def unheard(used: NetworkUsed) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one run. Sizes in bytes; `memory` and `processes` (threads are counted
    too) are totals of the whole tree."""

    wall_seconds: float = 60.0
    output_bytes: int = 32 * MIB
    kept_bytes: int = 64 * 1024
    processes: int = 512
    memory_bytes: int = 4096 * MIB
    disk_bytes: int = 1024 * MIB
    paths: int = 100_000

    @property
    def file_bytes(self) -> int:
        """At which the kernel cuts a single file: beyond the disk limit, and no size that one has by chance."""
        return (self.disk_bytes // 512 + 1) * 512


@dataclass(frozen=True, slots=True)
class Opened:
    """What a person's policy lines open to a task: real paths with all below them, names of variables."""

    paths: tuple[Path, ...] = ()
    variables: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Roots:
    """The directories of which a command sees a copy-on-write view. Real paths; everything else is read-only.

    `layer`: the private directory, inside artoo's own home, that holds project and workspace when these are copies
    of which nothing is the user's yet. `opened`: what else commands and tools may read.
    """

    home: Path
    workspace: Path
    project: Path
    layer: Path | None = None
    opened: Opened = Opened()


@dataclass(frozen=True, slots=True)
class SandboxRequest:
    """One command to run.

    `argv[0]` is looked up on the sandbox's PATH. `env` is laid over the cleaned environment (key-like names are
    removed from both). `read_only`: changes are reported and always dropped. `unconfined`: a person has said yes
    to this very command running for real; only tiers that cannot stage changes honour it. `keep_env` names
    variables that pass although they look like keys. `scratch` is the /tmp of the command, kept by the caller for
    as long as it likes (None: a fresh one, gone afterwards). `hide` adds paths out of reach. `hosts`: where it may
    connect to (`HOST:PORT`), each allowed by the person or a policy; empty: no network. `heard` is told of each
    connection, `printed` of what the command writes, while it runs.
    """

    argv: tuple[str, ...]
    cwd: Path
    roots: Roots
    task_id: str
    read_only: bool = False
    unconfined: bool = False
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    keep_env: frozenset[str] = frozenset()
    stdin: bytes | None = None
    limits: Limits = Limits()
    scratch: Path | None = None
    hide: tuple[Path, ...] = ()
    hosts: tuple[str, ...] = ()
    heard: Heard = unheard
    printed: printing.Heard = printing.unheard

    @classmethod
    def bash(
        cls,
        script: str,
        *,
        cwd: Path,
        roots: Roots,
        task_id: str,
        read_only: bool = False,
        limits: Limits | None = None,
    ) -> SandboxRequest:
        """A request that runs `script` with bash."""
        return cls(
            argv=("bash", "-c", script),
            cwd=cwd,
            roots=roots,
            task_id=task_id,
            read_only=read_only,
            limits=limits or Limits(),
        )


@dataclass(frozen=True, slots=True)
class Captured:
    """One output stream: its first and last bytes, and how many there were."""

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0

    @property
    def truncated(self) -> bool:
        return self.total_bytes > len(self.head) + len(self.tail)

    @property
    def text(self) -> str:
        gap = b""
        if self.truncated:
            gap = b"\n[... %d bytes left out ...]\n" % (self.total_bytes - len(self.head) - len(self.tail))
        return (self.head + gap + self.tail).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class ActNote:
    """What is kept of the call whose changes take effect, with them: a crash right afterwards loses nothing.

    `act` is the call's id within the task, `call` a digest of what was run, `outcome` how it ended if the changes
    take effect: text that only the caller understands, a few kilobytes.
    """

    act: str
    call: str
    outcome: str


@dataclass(frozen=True, slots=True)
class ViewRun:
    """What a run was. `changes`: what it did to the view, in path order (`read_only`, a look: what it would have
    done, where a tier can tell).

    A run that was stopped by a limit changed nothing. `needs_confirmation`: this tier could not run it, or only
    read-only; run it again `unconfined` after a yes. `notes` are facts for the reader.
    """

    tier: TierName
    status: RunStatus
    exit_code: int | None
    stdout: Captured
    stderr: Captured
    duration_seconds: float
    changes: tuple[Change, ...] = ()
    needs_confirmation: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TierDiagnosis:
    """Whether a tier works here; if not, the cause and what to do about it, in words for `artoo doctor`."""

    tier: TierName
    works: bool
    cause: str = ""
    remedy: str = ""


class Sandbox(Protocol):
    """Contains commands."""

    @property
    def tier(self) -> TierName: ...

    async def look(self, request: SandboxRequest) -> ViewRun:
        """Run one command of which nothing stays to its end; afterwards none of its processes is left.

        Raises SandboxError when the command cannot be contained, or what it did cannot be read. Cancelling the call
        ends the command.
        """
        ...
