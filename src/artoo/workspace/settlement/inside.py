"""Run one command over a resting workspace in a sandbox, with its timeout.

It is called from blocking code.

It is used for git. The task may have changed the repository's settings, so git never runs on it outside.
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
"""The timeout. It suffices for git on a large repository, and a hung command must not block settlement forever."""


def run_inside(
    directory: WorkspaceDirectory,
    artoo_home: Path,
    backend: Backend | None,
    argv: Sequence[str],
    cwd: Path,
    *,
    scratch: Path | None = None,
) -> Ended:
    """Run a command over the workspace in its present state, and return its result. Blocking.

    If `backend` is None or of the other kind (overlay or copy), a suitable one is chosen. Copies are always opened
    as copies, even if overlays are possible now, because otherwise the user's own files would be visible. Writes to
    covered directories are discarded (but stay in the copy, as copy backends have no temporary layer). `scratch`:
    the directory for /tmp, whose files can be read afterwards, without following links. Raises SandboxError.
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
    """Run a command. If `backend` is None, the best backend of this machine is used, which must have an overlay."""
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
