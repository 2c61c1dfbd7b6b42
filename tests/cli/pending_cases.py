"""Tasks whose changes wait for a yes, made by real commands in real views."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from artoo.contracts.settling import ApplyMode, Ending, Settled
from artoo.ports.sandbox import Roots
from artoo.ports.world import Program
from artoo.tools.settler import Settler
from artoo.world.choose import open_sandbox
from artoo.world.opening import views_in

FIRST, SECOND = "0198f000-1111-7000-8000-000000000001", "0198f000-2222-7000-8000-000000000002"


def waits(
    artoo_home: Path, home: Path, project: Path, command: str, *, task_id: str = FIRST, request: str = "tidy up"
) -> Settled:
    """Runs a shell command as a whole task; what it changed is settled with nobody to ask."""

    async def run() -> Settled:
        sandbox = await open_sandbox(artoo_home)
        if sandbox.tier not in ("bubblewrap", "namespaces"):
            pytest.skip("no tier that runs commands in views works here")
        roots = Roots(home=home, workspace=project, project=project)
        view = views_in(sandbox, artoo_home)(task_id, roots)
        ended = await view.run(Program(("bash", "-c", command)))
        assert ended.status == "ok", ended
        settler = Settler(view, artoo_home, request=request, mode=ApplyMode.NEW)
        return await settler.settle(Ending(task_id=task_id, directive="accept"), None)

    return asyncio.run(run())
