"""Read and write whole files in the workspace for write_file and edit_file, with their size limit."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from artoo.contracts.changes import Change, Trait
from artoo.contracts.errors import SandboxError, ToolError
from artoo.contracts.execution import CallEffects, CallStatus
from artoo.ports.sandbox import Roots
from artoo.ports.workspace import Files, Workspace
from artoo.tools.core.call_changes import CallChanges
from artoo.tools.core.command_runner import meant_changes
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Outcome
from artoo.tools.files.paths import closed_reason, shown
from artoo.tools.files.text_files import open_plain
from artoo.tools.provenance.read_tracking import LookedAt
from artoo.tools.resume.in_flight import current_subtask, goes_out
from artoo.workspace.changes.path_class import Places

MAX_EDITED_BYTES = 4 << 20
"""Maximum size in bytes of a file that can be edited."""


@dataclass(frozen=True, slots=True)
class WorkspaceWriter:
    """Reads and writes whole files in a workspace."""

    workspace: Workspace
    places: Places
    looked: LookedAt = field(default_factory=LookedAt)
    changes: CallChanges | None = None

    async def write(
        self, path: Path, content: bytes, shows: str = "", remark: str = "", *, anew: bool = False
    ) -> Outcome:
        """Write a file. The `changes` of the outcome list the paths that were created or replaced.

        The output is `shows`. If `shows` is empty, the output is a line that describes the write and contains
        `remark`. `anew`: true if the content was not made from the result of `read`. Raises ToolError if the file
        cannot be written. With `anew`, also raises it if the user saved the file after it was shown, or if only a
        part of it was shown.
        """
        roots, name = self.workspace.roots, shown(path, self.workspace.roots)
        refusal = await in_thread(out_of_reach, self.workspace.files, path, roots, self.places)
        if refusal is not None:
            return Outcome(status=CallStatus.REFUSED, reason=refusal)
        if anew and (why := await in_thread(self._why_not_replaced, path)):
            raise ToolError(f"{name} {why}")
        await goes_out(CallEffects.STAGED)
        attributed = self.changes or CallChanges(self.workspace, self.looked)
        call = await attributed.begin(current_subtask(), marked=False)
        try:
            changes = await self.workspace.write(path, content)
        except SandboxError as error:
            raise ToolError(f"{name} was not written: {error}") from error
        finally:
            attributed.abandon(call)
        await attributed.end(call, changes)
        return _written(name, content, changes, shows, remark)

    async def read(self, path: Path) -> bytes | None:
        """Return the whole content of a file that is to be edited, or None if it does not exist. Raises
        ToolError."""
        return await in_thread(self._read, path)

    def _why_not_replaced(self, path: Path) -> str:
        files = self.workspace.files
        real = files.resolve(path)
        return self.looked.why_not_replaced(real, files.stat(real))

    def _read(self, path: Path) -> bytes | None:
        files, name = self.workspace.files, shown(path, self.workspace.roots)
        refusal = out_of_reach(files, path, self.workspace.roots, self.places)
        if refusal is not None:
            raise ToolError(refusal)
        real = files.resolve(path)
        if files.stat(real) is None:
            return None
        try:
            with open_plain(files, real) as (file, size):
                if size > MAX_EDITED_BYTES:
                    raise ToolError(f"{name} has {size} bytes; only files of up to {MAX_EDITED_BYTES} are edited")
                return file.read(MAX_EDITED_BYTES + 1)
        except OSError as error:
            raise ToolError(f"{name} cannot be read: {error.strerror}") from error


def out_of_reach(files: Files, path: Path, roots: Roots, places: Places) -> str | None:
    """Return the reason why tools may not touch the file at the end of a path's links. Return None if they may."""
    try:
        real = files.resolve(path)
    except OSError as error:
        return f"{shown(path, roots)} cannot be used: {error.strerror}"
    return closed_reason(path, roots) if places.is_hidden(os.fsencode(real)) else None


def _written(name: str, content: bytes, changes: tuple[Change, ...], shows: str, remark: str) -> Outcome:
    if all(change.has(Trait.TIMES_ONLY) for change in changes):
        return Outcome(output=f"{name} is already there with exactly this content", ran="nothing was written")
    last, said = changes[-1], [_measure(content), remark]
    said += [f"{last.size_before} bytes before"] if last.size_before is not None else []
    verb = "created" if last.before is None else "replaced"
    output = shows or f"{verb} {name} ({'; '.join(filter(None, said))})"
    return Outcome(output=output, changes=meant_changes(changes))


def _measure(content: bytes) -> str:
    lines = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
    return f"{len(content)} bytes, lines: {lines}"
