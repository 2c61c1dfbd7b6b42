"""Stand-ins for what the tools' surroundings provide."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from artoo.contracts.changes import ApplyReport, Change
from artoo.contracts.errors import SandboxError
from artoo.contracts.execution import ToolCall
from artoo.ports.sandbox import ActNote, Captured, Roots, SandboxRequest, SandboxRun, StagedChanges, TierName
from artoo.tools.registry import SubTaskToolbox


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
class Staged:
    """Changes that a run reports; dropping them is remembered."""

    changes: tuple[Change, ...] = ()
    digest: str = ""
    dropped: bool = False

    async def content(self, path: str, limit: int) -> bytes | None:
        return None

    async def apply(
        self, *, digest: str, paths: Collection[str] | None = None, note: ActNote | None = None
    ) -> ApplyReport:
        raise SandboxError("this stand-in applies nothing")

    async def drop(self) -> None:
        self.dropped = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.drop()


@dataclass(slots=True)
class PlainSandbox:
    """Runs commands for real and contains nothing: for tests of what tools make of a command's end.

    `changes` is what every run reports to have changed.
    """

    changes: tuple[Change, ...] = ()
    requests: list[SandboxRequest] = field(default_factory=list[SandboxRequest])
    staged: list[Staged] = field(default_factory=list[Staged])
    kept: int = 64 * 1024
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def tier(self) -> TierName:
        return "none"

    async def run(self, request: SandboxRequest) -> SandboxRun:
        self.requests.append(request)
        self.begun.set()
        staged = Staged(self.changes)
        self.staged.append(staged)
        process = await asyncio.create_subprocess_exec(
            *request.argv,
            cwd=request.cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        timed_out = False
        gathering = asyncio.ensure_future(process.communicate())
        try:
            async with asyncio.timeout(request.limits.wall_seconds):
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
        return SandboxRun(
            tier="none",
            status="timeout" if timed_out else "ok" if code == 0 else "error",
            exit_code=None if timed_out else code if code is None or code >= 0 else 128 - code,
            stdout=self._captured(stdout),
            stderr=self._captured(stderr),
            duration_seconds=0.0,
            staged=staged,
        )

    async def stage_write(self, request: SandboxRequest, path: Path, content: bytes) -> StagedChanges:
        raise SandboxError("this stand-in stages nothing")

    def _captured(self, data: bytes) -> Captured:
        if len(data) <= 2 * self.kept:
            return Captured(data, b"", len(data))
        return Captured(data[: self.kept], data[-self.kept :], len(data))


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
