"""Run one command over a resting workspace in a sandbox, with its timeout.

It is called by blocking code.

Git is run in this way. The task may have changed the settings of the repository, so git is never run on it outside
of a sandbox.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import Command, Ended
from artoo.sandbox.backends.copying import CopyBackend
from artoo.sandbox.backends.select import open_backend
from artoo.sandbox.protocols import Backend, Layer, Layout
from artoo.workspace.directory import WorkspaceDirectory

_SECONDS = 120.0
"""The timeout. It is long enough for git on a large repository. Without it, a hung command would block settlement
forever."""


def run_inside(
    directory: WorkspaceDirectory,
    artoo_home: Path,
    backend: Backend | None,
    argv: Sequence[str],
    cwd: Path,
    *,
    scratch: Path | None = None,
) -> Ended:
    """Run a command over the workspace as it is now, and return the result. Blocking.

    If `backend` is None or does not fit the workspace (an overlay or copies), another one is chosen. Copies are
    always opened as copies, even if overlays are possible now. With an overlay the user's own files would be
    visible. What the command writes to covered directories is discarded. In copies it remains, because backends for
    copies have no temporary layer. `scratch`: the directory that the command sees as /tmp. Its files can be read
    afterwards, without following links. Raises SandboxError.
    """
    with tempfile.TemporaryDirectory(prefix="inside-", dir=directory.base) as place:
        own, overlays = Path(place), directory.layers()
        layout = Layout(
            task_id=directory.task_id,
            roots=directory.record().roots,
            artoo_home=artoo_home,
            scratch=scratch or own,
            layers=tuple(Layer(one.root, below=(one.upper,)) for one in overlays if one.upper is not None),
            copies=() if overlays else tuple((one.root, one.place) for one in directory.covered()),
        )
        command = Command(tuple(argv), cwd=cwd)
        if backend is None or backend.has_overlay != bool(overlays):
            backend = None if overlays else CopyBackend(directory.record().backend)
        return asyncio.run(_run(backend, layout, command, own / "output"))


async def _run(backend: Backend | None, layout: Layout, command: Command, output: Path) -> Ended:
    """Run a command. If `backend` is None, the best backend of this machine is used, which must support
    overlays."""
    backend = backend or await open_backend(layout.artoo_home)
    if layout.layers and not backend.has_overlay:
        raise SandboxError("no overlay can be mounted here, and the task worked in one; `artoo doctor` says why")
    sandbox = await backend.open(layout)
    try:
        process = await sandbox.start(command, "inside", output)
        ended = await process.wait(_SECONDS)
        if ended is None:
            raise SandboxError(f"{command.argv[0]} did not end within {_SECONDS:.0f} s in the task's workspace")
        return ended
    finally:
        await sandbox.close()
