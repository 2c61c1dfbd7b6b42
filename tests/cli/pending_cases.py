"""Tasks whose changes are pending, made by real commands in real workspaces."""

from __future__ import annotations

import asyncio
from pathlib import Path

from artoo.contracts.settling import ApplyMode, Ending, Settled
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Command
from artoo.tools.settlement.settler import Settler
from artoo.workspace.workspace import workspaces_in
from overlay_here import overlay_backend

FIRST, SECOND = "0198f000-1111-7000-8000-000000000001", "0198f000-2222-7000-8000-000000000002"


def waits(
    artoo_home: Path, home: Path, project: Path, command: str, *, task_id: str = FIRST, request: str = "tidy up"
) -> Settled:
    """Run a shell command as a whole task; what it changed is settled with no one to ask."""

    async def run() -> Settled:
        backend = await overlay_backend(artoo_home)
        roots = Roots(home=home, workspace=project, project=project)
        workspace = workspaces_in(backend, artoo_home)(task_id, roots)
        ended = await workspace.run(Command(("bash", "-c", command)), 60.0)
        assert ended.status == "ok", ended
        settler = Settler(workspace, artoo_home, request=request, mode=ApplyMode.NEW)
        return await settler.settle(Ending(task_id=task_id, directive="accept"), None)

    return asyncio.run(run())
