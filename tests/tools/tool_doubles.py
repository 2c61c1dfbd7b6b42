"""Stand-ins for what the tools' surroundings provide."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from artoo.contracts.changes import Change, ChangeKind, Clash, Node, PathClass, printable_path
from artoo.contracts.errors import SandboxError
from artoo.contracts.execution import ToolCall
from artoo.contracts.settling import ClassifiedChange
from artoo.ports.sandbox import ActNote, Captured, Roots
from artoo.ports.world import Files, Program, ViewRun, unnoted
from artoo.tools.registry import SubTaskToolbox
from artoo.world.union import RealFiles


class StillClock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass(slots=True)
class PlainView:
    """Runs commands for real and contains nothing: for tests of what tools make of a command's end.

    `reported` is what every run reports to have changed; a fork is the view itself.
    """

    roots: Roots
    reported: tuple[Change, ...] = ()
    needs_confirmation: bool = False
    programs: list[Program] = field(default_factory=list[Program])
    kept: int = 64 * 1024
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    noted: dict[str, ActNote] = field(default_factory=dict[str, ActNote])

    @property
    def files(self) -> Files:
        return RealFiles()

    async def run(self, program: Program) -> ViewRun:
        self.programs.append(program)
        self.begun.set()
        if self.needs_confirmation and not program.unconfined:
            return ViewRun("none", "refused", None, Captured(), Captured(), 0.0, needs_confirmation=True)
        process = await asyncio.create_subprocess_exec(
            *program.argv,
            cwd=self.roots.project,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        timed_out = False
        gathering = asyncio.ensure_future(process.communicate())
        try:
            async with asyncio.timeout(program.limits.wall_seconds):
                stdout, stderr = await asyncio.shield(gathering)
        except TimeoutError:
            timed_out = True
            process.kill()
            stdout, stderr = await gathering
        except asyncio.CancelledError:
            process.kill()
            await gathering
            raise
        code = process.returncode
        run = ViewRun(
            tier="none",
            status="timeout" if timed_out else "ok" if code == 0 else "error",
            exit_code=None if timed_out else code if code is None or code >= 0 else 128 - code,
            stdout=self._captured(stdout),
            stderr=self._captured(stderr),
            duration_seconds=0.0,
            changes=() if timed_out else self.reported,
        )
        self._keep(program.note(run) if run.changes else None)
        return run

    async def write(
        self, path: Path, content: bytes, note: Callable[[tuple[Change, ...]], ActNote | None] = unnoted
    ) -> tuple[Change, ...]:
        changes = written(path, content)
        self._keep(note(changes) if changes else None)
        return changes

    async def notes(self) -> Mapping[str, ActNote]:
        return self.noted

    def _keep(self, note: ActNote | None) -> None:
        if note is not None:
            self.noted[note.act] = note

    async def changes(self) -> tuple[Change, ...]:
        return self.reported

    async def classes(self) -> tuple[ClassifiedChange, ...]:
        return ()

    def fork(self, name: str) -> PlainView:
        return self

    async def join(self, names: Sequence[str]) -> tuple[Clash, ...]:
        return ()

    async def drop(self, name: str) -> None:
        return

    async def close(self) -> None:
        return

    def _captured(self, data: bytes) -> Captured:
        if len(data) <= 2 * self.kept:
            return Captured(data, b"", len(data))
        return Captured(data[: self.kept], data[-self.kept :], len(data))


def written(path: Path, content: bytes) -> tuple[Change, ...]:
    """Writes a file for real; what that changed."""
    before = path.read_bytes() if path.is_file() else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise SandboxError(f"{error.strerror}") from error
    return () if before == content else (changed(path, before=None if before is None else Node.FILE),)


def changed(path: Path, *, before: Node | None = None) -> Change:
    """The record of a file that was made, or (`before`) replaced."""
    return Change(
        kind=ChangeKind.CREATED if before is None else ChangeKind.OVERWRITTEN,
        path=printable_path(os.fsencode(path)),
        node=Node.FILE,
        before=before,
        path_class=PathClass.PROJECT,
        content_sha256=hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None,
    )


def roots_in(place: Path) -> Roots:
    """A home with a project and a workspace in it, made on disk."""
    home = place / "home"
    roots = Roots(home=home, workspace=home / "artoo_workspace", project=home / "project")
    roots.workspace.mkdir(parents=True)
    roots.project.mkdir()
    return roots


MakeToolbox = Callable[..., SubTaskToolbox]
"""What the fixture `make_toolbox` gives."""


def said(call: ToolCall) -> str:
    """Everything that a record tells its reader."""
    return "\n".join(filter(None, (call.output, call.error_output, call.reason)))
