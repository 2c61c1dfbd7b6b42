"""The interfaces of backend and sandbox, and the layout that they get."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from artoo.ports.sandbox import Roots
from artoo.ports.workspace import BackendName, Command, Process, SandboxLimits


@dataclass(frozen=True, slots=True)
class Layer:
    """An overlay over one real directory.

    `upper` and `work`: directories on disk. They are None for temporary ones, which are deleted with the sandbox.
    `below`: read-only upper directories that lie under `upper`, topmost first. For example, a check runs in a
    temporary layer over the workspace's own upper directory.
    """

    root: Path
    upper: Path | None = None
    work: Path | None = None
    below: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """The directories and settings from which a sandbox is made.

    `layers`: the overlays, for backends that can mount them. `copies` (real directory, its copy): for backends that
    cannot. `scratch`: the directory that commands see as /tmp and /var/tmp. `scratch_is_shared`: true if another
    sandbox uses this directory too. Its content is visible then, but writes to it are discarded. `artoo_home` is
    always hidden from commands.
    """

    task_id: str
    roots: Roots
    artoo_home: Path
    scratch: Path
    layers: tuple[Layer, ...] = ()
    copies: tuple[tuple[Path, Path], ...] = ()
    scratch_is_shared: bool = False
    limits: SandboxLimits = field(default_factory=SandboxLimits)


class Sandbox(Protocol):
    """A running sandbox. Its commands share its processes, network and mounts."""

    @property
    def root(self) -> int | None:
        """A descriptor of the root directory that commands see. It is None for backends without an overlay."""
        ...

    @property
    def alive(self) -> bool:
        """True until the supervisor of the sandbox has ended."""
        ...

    @property
    def hidden(self) -> tuple[str, ...]:
        """The paths that commands cannot see although PATH, an active environment or a link of the project refers
        to them."""
        ...

    async def start(self, command: Command, process_id: str, output: Path) -> Process:
        """Start a command. Its output is also written to the file `output`. Raises SandboxError."""
        ...

    async def refresh(self) -> None:
        """Drop the kernel's cached names, so that the user's present files are visible. Raises SandboxError."""
        ...

    async def close(self) -> None:
        """Kill every process of the sandbox, and end it. Afterwards none of its processes exists. Idempotent."""
        ...


class Backend(Protocol):
    """A way to confine commands on a machine."""

    @property
    def name(self) -> BackendName: ...

    @property
    def has_overlay(self) -> bool: ...

    def roots_to_cover(self, roots: Roots) -> tuple[Path, ...]:
        """Return the outermost real directories over which an overlay can be mounted. Blocking."""
        ...

    async def open(self, layout: Layout) -> Sandbox:
        """Start a sandbox. Raises SandboxError with the cause and a remedy."""
        ...
