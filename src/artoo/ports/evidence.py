"""The interface of evidence for validators (files, changes, trial runs), with limits on characters.

All methods read the task's workspace (`ports.workspace`): R4a's source reports the changes of its subtask, R4b's
source the changes of the task. No method changes the workspace, and no method raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

Language = Literal["bash", "python"]
"""The languages of whole programs."""

# Default limit for the characters of a difference.
DIFFERENCE_CHARACTERS = 20_000

# Most paths that are reported of those that a check would write, in path order.
MOST_WRITTEN = 2_000

TRIAL_TEXTS = 20
# Limits for reading the text files of a trial: TRIAL_TEXTS files and TRIAL_CHARACTERS characters in all.
TRIAL_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class FileView:
    """The facts about a file for a check: kind, size in bytes, and text (None if missing, binary or too large).

    `sha256` (hex) is the hash of the whole content of a readable regular file of any size, otherwise empty. A
    link without a target has `is_broken_link` and does not count as existing. `problem` says why the file could
    not be read; a missing file is no problem."""

    exists: bool
    is_directory: bool = False
    is_broken_link: bool = False
    size: int = 0
    text: str | None = None
    problem: str | None = None
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class CommandView:
    """The result of a read-only command. `exit_code` is None if it did not end by itself (`problem` says why).
    `output` is its whole output, which ends with `errors`, its error output.

    `written` are the printable paths that it changed; all these changes are discarded. Directories end with a
    slash. Caches, and files that it rewrote with the same bytes, are left out."""

    exit_code: int | None
    output: str
    problem: str | None = None
    written: tuple[str, ...] = ()
    errors: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a program that ran in a throw-away copy of the workspace.

    `files` maps the printable path (as in `ToolCall.changes`) of every regular file that it made or changed to
    the sha256 (hex) of the new content; a deleted file has an empty digest. Caches are left out. It is empty if
    the program could not run (`view.problem` says why). `texts` has the contents of the first TRIAL_TEXTS text
    files, with at most TRIAL_CHARACTERS characters in all."""

    view: CommandView
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])


class EvidenceSource(Protocol):
    """Read-only access to the present files of one subtask (for R4b: of the task)."""

    async def file(self, path: str) -> FileView:
        """Read a file. Relative paths are tried below the project root, then below the workspace. Never raises."""
        ...

    async def command(self, command: str) -> CommandView:
        """Run a shell command in a throw-away layer, with limits for time and output. Never raises."""
        ...

    async def trial(self, language: Language, program: str) -> Trial:
        """Run a whole program in a copy of the workspace *before* this subtask's changes (R4b: as it is now).

        The run has a time limit, and its changes are discarded. If the workspace is too large for a copy, the
        trial says so. Never raises.
        """
        ...

    async def difference(self, limit: int = DIFFERENCE_CHARACTERS) -> str:
        """Return the changes of this subtask (R4b: of the task) so far, as unified diffs, cut at `limit`
        characters.

        A binary file, a deletion, a link or a change of mode is described in one line. The text is empty if
        nothing changed. Never raises: the text names files that cannot be read.
        """
        ...
