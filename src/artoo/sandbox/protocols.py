"""The seam between a workspace and what confines its commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from artoo.ports.sandbox import Roots
from artoo.ports.workspace import BackendName, Command, Process, SandboxLimits


@dataclass(frozen=True, slots=True)
class Layer:
    """An overlay over one real directory.

    `upper` and `work` are directories on disk; None: a throw-away upper directory that goes with the sandbox.
    `below` are upper directories that lie between, topmost first: a check runs over the workspace's own.
    """

    root: Path
    upper: Path | None = None
    work: Path | None = None
    below: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that a sandbox is made of.

    `layers` for backends with an overlay, `copies` (real directory to its copy) for those without. `scratch` is the
    directory that commands see as /tmp and /var/tmp. `scratch_is_shared`: another sandbox works in it, so its
    content is seen and what is written there is thrown away. `artoo_home` is always hidden.
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
    """The living sandbox: commands start in it and share its processes, network and mounts."""

    @property
    def root(self) -> int | None:
        """The directory descriptor of its root, as commands see it; None for backends without an overlay."""
        ...

    @property
    def alive(self) -> bool:
        """True until its supervisor has ended."""
        ...

    @property
    def hidden(self) -> tuple[str, ...]:
        """Paths of PATH, of an active environment or of a link of the project that commands cannot see."""
        ...

    async def start(self, command: Command, process_id: str, output: Path) -> Process:
        """Start a command; what it prints is also written to the file `output`. Raises SandboxError."""
        ...

    async def refresh(self) -> None:
        """Drop the kernel's cached names, so that the user's files show as they are now. Raises SandboxError."""
        ...

    async def close(self) -> None:
        """Kill every process and end the sandbox; afterwards none of its processes is left. Idempotent."""
        ...


class Backend(Protocol):
    """The way to confine commands on a machine."""

    @property
    def name(self) -> BackendName: ...

    @property
    def has_overlay(self) -> bool: ...

    def roots_to_cover(self, roots: Roots) -> tuple[Path, ...]:
        """Return the real directories over which an overlay can be mounted, outermost only. Blocking."""
        ...

    async def open(self, layout: Layout) -> Sandbox:
        """Start a sandbox. Raises SandboxError with the cause and what to do."""
        ...
