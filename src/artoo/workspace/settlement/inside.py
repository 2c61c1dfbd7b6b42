"""Run a command in a one-shot sandbox over a workspace that is at rest, from blocking code.

Settlement runs git there: the task may have configured the repository, so git never runs on it outside.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import Command, CommandLimits, Ended
from artoo.sandbox.protocols import Backend, Layer, Layout
from artoo.workspace.directory import WorkspaceDirectory, WorkspaceKind


def run_inside(
    directory: WorkspaceDirectory,
    artoo_home: Path,
    backend: Backend,
    argv: Sequence[str],
    cwd: Path,
    *,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
    scratch: Path | None = None,
    kept_bytes: int = 1 << 20,
    seconds: float = 120.0,
) -> Ended:
    """Run a command over the workspace as it stands, and return how it ended. Blocking.

    What it writes to covered directories is dropped (copy backends have no throw-away layer; there it stays in the
    copy). `scratch` is a directory that it sees as /tmp: what it leaves there can be read afterwards, without
    following links. Raises SandboxError when the sandbox cannot be started.
    """
    command = Command(tuple(argv), cwd=cwd, env=env or {}, stdin=stdin, limits=CommandLimits(kept_bytes=kept_bytes))
    with ExitStack() as left:
        if scratch is None:
            directory.base.mkdir(mode=0o700, parents=True, exist_ok=True)
            scratch = Path(left.enter_context(tempfile.TemporaryDirectory(prefix="inside-", dir=directory.base)))
        layout = _layout(directory, artoo_home, scratch)
        output = Path(left.enter_context(tempfile.TemporaryDirectory(prefix="output-", dir=directory.base))) / "0"
        return asyncio.run(_run(backend, layout, command, output, seconds))


def _layout(directory: WorkspaceDirectory, artoo_home: Path, scratch: Path) -> Layout:
    record = directory.record()
    covered = directory.covered()
    overlay = record.kind is WorkspaceKind.OVERLAY
    return Layout(
        task_id=directory.task_id,
        roots=record.roots,
        artoo_home=artoo_home,
        scratch=scratch,
        layers=tuple(Layer(one.root, below=(one.place,)) for one in covered) if overlay else (),
        copies=() if overlay else tuple((one.root, one.place) for one in covered),
    )


async def _run(backend: Backend, layout: Layout, command: Command, output: Path, seconds: float) -> Ended:
    sandbox = await backend.open(layout)
    try:
        process = await sandbox.start(command, "inside", output)
        ended = await process.wait(seconds)
        if ended is None:
            await process.stop()
            raise SandboxError(f"{command.argv[0]} did not end within {seconds:.0f} s in the task's workspace")
        return ended
    finally:
        await sandbox.close()
