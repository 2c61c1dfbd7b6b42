"""What the validators look at: files, and commands that can change nothing. Implements `ports.evidence`."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path

from artoo.contracts.changes import Change, PathClass
from artoo.contracts.errors import ArtooError, ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.evidence import DIFFERENCE_CHARACTERS, CommandView, FileView, Language, Trial
from artoo.ports.sandbox import Limits, Roots, Sandbox, SandboxRequest
from artoo.tools.commands import PLAIN_LOCALE, bash, meant_changes, outcome_of, python
from artoo.tools.paths import existing
from artoo.tools.text_file import NotPlainFile, decode, open_plain, read_limited
from artoo.tools.threads import in_thread
from artoo.world.classify import Places

MAX_TEXT_BYTES = 4 << 20
"""Bytes of a file that a check may match; a larger file has no text for it."""

CHECK_SECONDS = 30.0
SCRIPT_SECONDS = 60.0
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class ReadOnlyEvidence:
    """Looks at the task's project and workspace through the sandbox, read-only."""

    sandbox: Sandbox
    roots: Roots
    places: Places
    task_id: str
    seconds: float = CHECK_SECONDS

    async def file(self, path: str) -> FileView:
        """Looks at a file; relative paths start at the project root, then the workspace. Never raises."""
        try:
            return await in_thread(self._file, path)
        except (ToolError, OSError) as error:
            return FileView(exists=False, problem=str(error))

    def _file(self, text: str) -> FileView:
        path = existing(text, self.roots)
        real = Path(os.path.realpath(path))
        if self.places.classify(os.fsencode(real)) in (PathClass.SECRET, PathClass.ARTOO):
            return FileView(exists=False, problem="it holds credentials or artoo's own records")
        try:
            status = real.stat()
        except OSError as error:
            problem = "it is a broken link" if path.is_symlink() else error.strerror
            return FileView(exists=False, problem=problem)
        if real.is_dir():
            return FileView(exists=True, is_directory=True)
        view = FileView(exists=True, size=status.st_size, sha256=_digest(real))
        if status.st_size > MAX_TEXT_BYTES:
            return replace(view, problem=f"it is larger than {MAX_TEXT_BYTES} bytes")
        try:
            data, _ = read_limited(real, MAX_TEXT_BYTES)
        except NotPlainFile as error:
            return replace(view, problem=str(error))
        except OSError as error:
            return replace(view, problem=error.strerror)
        text_read = decode(data)
        if text_read is None:
            return replace(view, problem="it is not text")
        return replace(view, text=text_read.text)

    async def command(self, command: str) -> CommandView:
        """Runs a shell command in the read-only sandbox, bounded in time and output. Never raises.

        A command that changed files in its view has no exit code: it shows what would be, not what is.
        """
        view, changes = await self._run(bash(command), self.seconds)
        changed = meant_changes(changes)
        if not changed:
            return view
        problem = f"a check may not change files, and this one would: {', '.join(changed[:3])}"
        return replace(view, exit_code=None, problem=problem)

    async def trial(self, language: Language, program: str) -> Trial:
        """Runs a whole program whose changes are dropped. Never raises."""
        argv = bash(program) if language == "bash" else python(program)
        view, changes = await self._run(argv, SCRIPT_SECONDS)
        meant = frozenset(meant_changes(changes))
        return Trial(view, {change.path: change.content_sha256 or "" for change in changes if change.path in meant})

    async def difference(self, limit: int = DIFFERENCE_CHARACTERS) -> str:
        """Commands take effect one by one: nothing is kept apart."""
        return ""

    async def _run(self, argv: tuple[str, ...], seconds: float) -> tuple[CommandView, tuple[Change, ...]]:
        """How a program ended, and what it would have changed."""
        request = SandboxRequest(
            argv=argv,
            cwd=self.roots.project,
            roots=self.roots,
            task_id=self.task_id,
            read_only=True,
            env=PLAIN_LOCALE,
            limits=Limits(wall_seconds=seconds),
        )
        try:
            run = await self.sandbox.run(request)
        except (ArtooError, OSError, ValueError) as error:
            return CommandView(exit_code=None, output="", problem=str(error)), ()
        async with run.staged:
            outcome = outcome_of(run, request.limits)
            changes = run.staged.changes
        ended = outcome.status in (CallStatus.OK, CallStatus.ERROR) and run.status in ("ok", "error")
        view = CommandView(
            exit_code=outcome.exit_code if ended else None,
            output="\n".join(filter(None, (outcome.output, outcome.error_output))),
            problem=None if ended else outcome.reason,
        )
        return view, changes


def _digest(path: Path) -> str:
    """Of the whole content; empty when it cannot be read."""
    whole = hashlib.sha256()
    try:
        with open_plain(path) as (file, _):
            while piece := file.read(_PIECE):
                whole.update(piece)
    except (NotPlainFile, OSError):
        return ""
    return whole.hexdigest()
