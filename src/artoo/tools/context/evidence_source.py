"""Evidence for validators from the workspace, with trial runs, check timeouts (30 and 60 seconds) and sizes.

The changes that these commands make are discarded. Implements `ports.evidence`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from artoo.contracts.changes import Change, ChangeKind, Node, path_bytes
from artoo.contracts.errors import ArtooError, SandboxError, ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.evidence import (
    DIFFERENCE_CHARACTERS,
    MOST_WRITTEN,
    TRIAL_CHARACTERS,
    TRIAL_TEXTS,
    CommandView,
    FileView,
    Language,
    Trial,
)
from artoo.ports.workspace import Command, Ended, Files, Workspace
from artoo.tools.core.command_runner import PLAIN_SETTINGS, bash, meant_changes, outcome_of, python
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Look
from artoo.tools.files.paths import entry_at, existing, withheld
from artoo.tools.files.text_files import NotPlainFile, decode, open_plain, read_limited
from artoo.tools.settlement.diff_text import difference
from artoo.workspace.changes.path_class import Places
from artoo.workspace.files.rooted import real_files

MAX_TEXT_BYTES = 4 << 20
"""Maximum size in bytes of a file whose text checks can match. A larger file has no text for checks."""

CHECK_SECONDS = 30.0
SCRIPT_SECONDS = 60.0
_TRIAL = "trial"
_PIECE = 1 << 20


def every_change(path: str) -> bool:
    """Include every change, whichever subtask made it."""
    return True


@dataclass(frozen=True, slots=True)
class WorkspaceEvidence:
    """Reads the evidence in one workspace, either for a subtask or for the whole task.

    `mine` takes a printable path and returns whether its change is included, because a subtask does not see the
    changes of other subtasks. `before` returns the user's files as they were before the task. `base` returns the
    workspace state in which a trial runs, or None if no trial is possible.
    """

    workspace: Workspace
    places: Places
    mine: Callable[[str], bool] = every_change
    before: Look = real_files
    base: Callable[[], Workspace | None] = lambda: None
    seconds: float = CHECK_SECONDS
    _one_trial: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def file(self, path: str) -> FileView:
        """Read a file; relative paths start at the project root, then at the workspace. Never raises."""
        try:
            return await in_thread(self._file, path, self.workspace.files)
        except (ToolError, OSError) as error:
            return FileView(exists=False, problem=str(error))

    def _file(self, text: str, files: Files) -> FileView:
        path = existing(text, self.workspace.roots, files)
        real = files.resolve(path)
        if (instead := withheld(real, self.places)) is not None:
            return FileView(exists=False, problem=instead)
        found = files.stat(real)
        if found is None:
            link = entry_at(files, path)
            if link is not None and stat.S_ISLNK(link.mode):
                return FileView(exists=False, is_broken_link=True, problem="it is a broken link")
            return FileView(exists=False)
        if stat.S_ISDIR(found.mode):
            return FileView(exists=True, is_directory=True)
        return _seen(files, real, found.size)

    async def command(self, command: str) -> CommandView:
        """Run a shell command in a temporary layer over the workspace, with limits on time and output. Never
        raises."""
        try:
            trial = await self.workspace.try_out(Command(bash(command), env=PLAIN_SETTINGS), self.seconds)
        except (ArtooError, OSError, ValueError) as error:
            return CommandView(exit_code=None, output="", problem=str(error))
        view = _view(trial.ended, self.seconds)
        return replace(view, written=await in_thread(self._written, trial.changes)) if trial.changes else view

    def _written(self, changes: tuple[Change, ...]) -> tuple[str, ...]:
        """Return the paths that the command changed. A build that writes the same content again has changed
        nothing."""
        meant = frozenset(meant_changes(changes))
        files = self.workspace.files
        told = (
            f"{change.path}/" if change.node is Node.DIRECTORY else change.path
            for change in changes
            if change.path in meant and not _is_same(change, files)
        )
        return tuple(islice(told, MOST_WRITTEN))

    async def trial(self, language: Language, program: str) -> Trial:
        """Run a whole program in a copy of an earlier state of the workspace, then discard the copy. Never
        raises."""
        argv = bash(program) if language == "bash" else python(program)
        async with self._one_trial:
            try:
                base = self.base()
                if base is None:
                    raise SandboxError("the workspace is too large for a second way")
                fork = await base.fork(_TRIAL)
                try:
                    return await self._tried(fork, Command(argv, env=PLAIN_SETTINGS))
                finally:
                    await base.discard_fork(_TRIAL)
            except (ArtooError, OSError) as error:
                return Trial(CommandView(exit_code=None, output="", problem=str(error)))

    async def _tried(self, fork: Workspace, command: Command) -> Trial:
        mark = await fork.mark()
        ended = await fork.run(command, SCRIPT_SECONDS)
        changes = await fork.changes_since(mark)
        meant = frozenset(meant_changes(changes))
        files = (each for each in changes if each.path in meant and each.node is not Node.DIRECTORY)
        left = {each.path: each.content_sha256 or "" for each in files}
        return Trial(_view(ended, SCRIPT_SECONDS), left, await in_thread(self._texts, left, fork.files))

    def _texts(self, left: Mapping[str, str], files: Files) -> dict[str, str]:
        """Return the contents of the files that a trial left behind, by their printable paths."""
        texts, room = dict[str, str](), TRIAL_CHARACTERS
        for path in islice((path for path, digest in left.items() if digest), TRIAL_TEXTS):
            text = self._file(os.fsdecode(path_bytes(path)), files).text
            if text is not None and len(text) <= room:
                texts[path] = text
                room -= len(text)
        return texts

    async def difference(self, limit: int = DIFFERENCE_CHARACTERS) -> str:
        """Render the changes in at most `limit` characters. Never raises."""
        try:
            changes = [one for one in await self.workspace.changes() if self.mine(one.path)]
            if not changes:
                return ""
            files, roots = self.workspace.files, self.workspace.roots
            return await in_thread(difference, changes, self.before(), files, roots, limit)
        except (ArtooError, OSError) as error:
            return f"(what was changed cannot be read: {error})"


def _view(ended: Ended, seconds: float) -> CommandView:
    """Describe how a command ended, in the form that checks use."""
    outcome = outcome_of(ended)
    by_itself = outcome.status in (CallStatus.OK, CallStatus.ERROR) and ended.status in ("ok", "error")
    late = f"it did not end within {seconds:g} s" if ended.status == "stopped" else outcome.reason
    return CommandView(
        exit_code=outcome.exit_code if by_itself else None,
        output="\n".join(filter(None, (outcome.output, outcome.error_output))),
        problem=None if by_itself else late,
        errors=outcome.error_output,
    )


def _is_same(change: Change, files: Files) -> bool:
    """Check whether a file was only rewritten with the same content."""
    if change.kind is not ChangeKind.OVERWRITTEN or not change.content_sha256:
        return False
    try:
        real = files.resolve(Path(os.fsdecode(path_bytes(change.path))))
    except OSError:
        return False
    return _digest(files, real) == change.content_sha256


def _seen(files: Files, path: Path, size: int) -> FileView:
    view = FileView(exists=True, size=size, sha256=_digest(files, path))
    if view.size > MAX_TEXT_BYTES:
        return replace(view, problem=f"it is larger than {MAX_TEXT_BYTES} bytes")
    try:
        data, _ = read_limited(files, path, MAX_TEXT_BYTES)
    except NotPlainFile as error:
        return replace(view, problem=str(error))
    except OSError as error:
        return replace(view, problem=error.strerror)
    text = decode(data)
    return replace(view, problem="it is not text") if text is None else replace(view, text=text.text)


def _digest(files: Files, path: Path) -> str:
    """Return the sha256 of the whole content, or "" if it cannot be read."""
    whole = hashlib.sha256()
    try:
        with open_plain(files, path) as (file, _):
            while piece := file.read(_PIECE):
                whole.update(piece)
    except (NotPlainFile, OSError):
        return ""
    return whole.hexdigest()
