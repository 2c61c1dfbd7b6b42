"""Real workspaces for tests: a sandbox, and nothing of a command in the user's files."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Workspace
from artoo.sandbox.backends.select import open_backend
from artoo.workspace.workspace import workspaces_in


@asynccontextmanager
async def real_workspace(roots: Roots, task_id: str = "task") -> AsyncGenerator[Workspace]:
    """Open a workspace whose artoo home is `.artoo` in the home; close it at the end."""
    home = roots.home / ".artoo"
    workspace = workspaces_in(await open_backend(home), home)(task_id, roots)
    try:
        yield workspace
    finally:
        await workspace.close()
