"""The real files, seen like a view in which nothing stays: for looks that belong to no task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from artoo.contracts.changes import Change, Clash
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ClassifiedChange
from artoo.ports.sandbox import ActNote, Roots, Sandbox, SandboxRequest
from artoo.ports.world import Files, Program, ViewRun, unnoted
from artoo.world.union import RealFiles


@dataclass(frozen=True, slots=True)
class RealView:
    """Implements `ports.world.View`. What a program changes is reported and dropped; nothing can be written."""

    sandbox: Sandbox
    roots: Roots
    task_id: str

    @property
    def files(self) -> Files:
        """Those of the disk."""
        return RealFiles()

    async def run(self, program: Program) -> ViewRun:
        """See View."""
        request = SandboxRequest(
            argv=program.argv,
            cwd=self.roots.project,
            roots=self.roots,
            task_id=self.task_id,
            read_only=True,
            env=program.env,
            keep_env=program.keep_env,
            stdin=program.stdin,
            limits=program.limits,
        )
        return replace(await self.sandbox.look(request), needs_confirmation=False)

    async def write(
        self, path: Path, content: bytes, note: Callable[[tuple[Change, ...]], ActNote | None] = unnoted
    ) -> tuple[Change, ...]:
        """Raises SandboxError."""
        raise SandboxError(f"{path} cannot be written: this only looks at files")

    async def notes(self) -> Mapping[str, ActNote]:
        """None."""
        return {}

    async def changes(self) -> tuple[Change, ...]:
        """None."""
        return ()

    async def classes(self) -> tuple[ClassifiedChange, ...]:
        """None."""
        return ()

    def fork(self, name: str) -> RealView:
        """The same: nothing stays in it either."""
        return self

    async def join(self, names: Sequence[str]) -> tuple[Clash, ...]:
        """There is nothing to join."""
        return ()

    async def drop(self, name: str) -> None:
        """There is nothing to drop."""

    async def close(self) -> None:
        """There is nothing to let go of."""
