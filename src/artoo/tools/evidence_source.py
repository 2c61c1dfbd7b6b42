"""What the validators look at: the files of a view, and commands whose changes go. Implements `ports.evidence`."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Protocol

from artoo.contracts.changes import Change, ChangeKind, Node, path_bytes
from artoo.contracts.errors import ArtooError, ToolError
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
from artoo.ports.sandbox import Limits
from artoo.ports.world import Files, Program, View
from artoo.tools.commands import PLAIN_LOCALE, bash, meant_changes, outcome_of, python
from artoo.tools.difference import difference
from artoo.tools.paths import entry_at, existing
from artoo.tools.seeing import Look, real_files
from artoo.tools.text_file import NotPlainFile, decode, open_plain, read_limited
from artoo.tools.threads import in_thread
from artoo.tools.withheld import withheld
from artoo.workspace.changes.path_class import Places
from artoo.world.view_place import TRIAL

MAX_TEXT_BYTES = 4 << 20
"""Bytes of a file that a check may match; a larger file has no text for it."""

CHECK_SECONDS = 30.0
SCRIPT_SECONDS = 60.0
_PIECE = 1 << 20


class Forkable(Protocol):
    """What a trial forks and drops again: a view, or who keeps account of its forks. See View."""

    def fork(self, name: str) -> View: ...

    async def drop(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class EvidenceInView:
    """Looks at one view: a subtask's fork, or the task's own.

    `before` are the files as they were before whatever the view did; `base` is what a trial forks, under the name
    `trial_name`.
    """

    view: View
    places: Places
    base: Forkable
    before: Look = real_files
    trial_name: str = TRIAL
    seconds: float = CHECK_SECONDS
    _one_trial: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def file(self, path: str) -> FileView:
        """Looks at a file; relative paths start at the project root, then the workspace. Never raises."""
        try:
            return await in_thread(self._file, path, self.view.files)
        except (ToolError, OSError) as error:
            return FileView(exists=False, problem=str(error))

    def _file(self, text: str, files: Files) -> FileView:
        path = existing(text, self.view.roots, files)
        real = files.resolve(path)
        if (instead := withheld(real, self.places)) is not None:
            return FileView(exists=False, problem=instead)
        place = files.at(real)
        if place is None:
            link = entry_at(files, path)
            if link is not None and link.is_symlink():
                return FileView(exists=False, is_broken_link=True, problem="it is a broken link")
            return FileView(exists=False)
        if place.is_dir():
            return FileView(exists=True, is_directory=True)
        return _seen(place)

    async def command(self, command: str) -> CommandView:
        """Runs a shell command, bounded in time and output; what it changes goes. Never raises."""
        program = Program(bash(command), Limits(wall_seconds=self.seconds), env=PLAIN_LOCALE, read_only=True)
        view, changes = await _run(self.view, program)
        return replace(view, written=await in_thread(self._written, changes)) if changes else view

    def _written(self, changes: tuple[Change, ...]) -> tuple[str, ...]:
        """What is otherwise than it stands in the view: a build that makes again what is there changes nothing."""
        meant = frozenset(meant_changes(changes))
        files = self.view.files
        told = (
            f"{change.path}/" if change.node is Node.DIRECTORY else change.path
            for change in changes
            if change.path in meant and not _is_same(change, files)
        )
        return tuple(islice(told, MOST_WRITTEN))

    async def trial(self, language: Language, program: str) -> Trial:
        """Runs a whole program in a fork of its own, and forgets it. Never raises."""
        argv = bash(program) if language == "bash" else python(program)
        wanted = Program(argv, Limits(wall_seconds=SCRIPT_SECONDS), env=PLAIN_LOCALE)
        async with self._one_trial:
            try:
                await self.base.drop(self.trial_name)  # what a crash may have left
                try:
                    fork = self.base.fork(self.trial_name)
                    view, changes = await _run(fork, wanted)
                    meant = frozenset(meant_changes(changes))
                    files = (each for each in changes if each.path in meant and each.node is not Node.DIRECTORY)
                    left = {each.path: each.content_sha256 or "" for each in files}
                    return Trial(view, left, await in_thread(self._texts, left, fork.files))
                finally:
                    await self.base.drop(self.trial_name)
            except (ArtooError, OSError) as error:
                return Trial(CommandView(exit_code=None, output="", problem=str(error)))

    def _texts(self, left: Mapping[str, str], files: Files) -> dict[str, str]:
        """What stands in the files that a trial left, by their printable paths."""
        texts, room = dict[str, str](), TRIAL_CHARACTERS
        for path in islice((path for path, digest in left.items() if digest), TRIAL_TEXTS):
            text = self._file(os.fsdecode(path_bytes(path)), files).text
            if text is not None and len(text) <= room:
                texts[path] = text
                room -= len(text)
        return texts

    async def difference(self, limit: int = DIFFERENCE_CHARACTERS) -> str:
        """What the view changed, in at most `limit` characters. Never raises."""
        try:
            changes = await self.view.changes()
            if not changes:
                return ""
            return await in_thread(difference, changes, self.before(), self.view.files, self.view.roots, limit)
        except (ArtooError, OSError) as error:
            return f"(what was changed cannot be read: {error})"


async def _run(view: View, program: Program) -> tuple[CommandView, tuple[Change, ...]]:
    """How a program ended, and what it changed."""
    try:
        run = await view.run(program)
    except (ArtooError, OSError, ValueError) as error:
        return CommandView(exit_code=None, output="", problem=str(error)), ()
    outcome = outcome_of(run, program.limits)
    ended = outcome.status in (CallStatus.OK, CallStatus.ERROR) and run.status in ("ok", "error")
    seen = CommandView(
        exit_code=outcome.exit_code if ended else None,
        output="\n".join(filter(None, (outcome.output, outcome.error_output))),
        problem=None if ended else outcome.reason,
        errors=outcome.error_output,
    )
    return seen, run.changes


def _is_same(change: Change, files: Files) -> bool:
    """Whether a file was written again as it was."""
    if change.kind is not ChangeKind.OVERWRITTEN or not change.content_sha256:
        return False
    try:
        place = files.at(files.resolve(Path(os.fsdecode(path_bytes(change.path)))))
    except OSError:
        return False
    return place is not None and _digest(place) == change.content_sha256


def _seen(place: Path) -> FileView:
    view = FileView(exists=True, size=place.lstat().st_size, sha256=_digest(place))
    if view.size > MAX_TEXT_BYTES:
        return replace(view, problem=f"it is larger than {MAX_TEXT_BYTES} bytes")
    try:
        data, _ = read_limited(place, MAX_TEXT_BYTES)
    except NotPlainFile as error:
        return replace(view, problem=str(error))
    except OSError as error:
        return replace(view, problem=error.strerror)
    text = decode(data)
    return replace(view, problem="it is not text") if text is None else replace(view, text=text.text)


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
