"""Run a command in a one-shot sandbox over a workspace that is at rest, from blocking code.

Git runs there: the task may have configured the repository, so git never runs on it outside.
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
"""Longer than git needs for a large repository; a hook or a broken file must not stop settlement for ever."""


def run_inside(
    directory: WorkspaceDirectory,
    artoo_home: Path,
    backend: Backend | None,
    argv: Sequence[str],
    cwd: Path,
    *,
    scratch: Path | None = None,
) -> Ended:
    """Run a command over the workspace as it stands, and return how it ended. Blocking.

    `backend` None, or one of the other kind: copies are opened as copies although an overlay could be mounted by
    now, because a sandbox without the copies would show the user's own files. What the command writes to covered
    directories is dropped (copy backends have no throw-away layer; there it stays in the copy). `scratch` is a
    directory that it sees as /tmp: what it leaves there can be read afterwards, without following links. Raises
    SandboxError.
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
    """Run a command. `backend` None: the best one of this machine, which must have an overlay."""
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
