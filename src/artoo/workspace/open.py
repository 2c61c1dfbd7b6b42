"""Opens the workspaces of one process: which backend confines their commands, and where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from artoo.ports.sandbox import Roots
from artoo.ports.workspace import SandboxLimits
from artoo.sandbox.protocols import Backend
from artoo.workspace.copies import CopyLimits
from artoo.workspace.directory import Workspaces
from artoo.workspace.state import Services
from artoo.workspace.workspace import LiveWorkspace


@dataclass(frozen=True, slots=True)
class OpenWorkspaces:
    """Implements `ports.workspace.OpenWorkspace`."""

    services: Services

    def __call__(self, task_id: str, roots: Roots) -> LiveWorkspace:
        return LiveWorkspace(self.services, Workspaces(self.services.artoo_home).directory(task_id), roots)


def workspaces_in(
    backend: Backend,
    artoo_home: Path,
    *,
    hide: tuple[Path, ...] = (),
    limits: SandboxLimits | None = None,
    copy_limits: CopyLimits | None = None,
) -> OpenWorkspaces:
    """Return what opens workspaces below artoo's home. `hide`: paths out of the commands' reach."""
    services = Services(backend, artoo_home.resolve(), hide, limits or SandboxLimits(), copy_limits or CopyLimits())
    return OpenWorkspaces(services)
