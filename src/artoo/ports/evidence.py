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

# Maximum number of paths that are reported of those that a check would write. They are reported in the order of the
# paths.
MOST_WRITTEN = 2_000

TRIAL_TEXTS = 20
# A trial reads at most TRIAL_TEXTS text files, and at most TRIAL_CHARACTERS characters of all of them together.
TRIAL_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class FileView:
    """The facts about a file that a check needs: its kind, its size in bytes, and its text. The text is None if the
    file is missing, binary or too large.

    `sha256` is the hash (hex) of the whole content of a readable regular file of any size. For any other file it is
    empty. If `is_broken_link` is true, the file is a link without a target, which does not count as existing.
    `problem` says why the file could not be read; a missing file is no problem."""

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
    `output` is the whole output of the command. It ends with `errors`, which is the error output.

    `written` contains the printable paths of the files that the command changed. All these changes are discarded.
    The paths of directories end with a slash. Caches are left out, and so are files that the command rewrote with
    the same bytes."""

    exit_code: int | None
    output: str
    problem: str | None = None
    written: tuple[str, ...] = ()
    errors: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a program that ran in a throw-away copy of the workspace.

    `files` maps the printable path of every regular file that the program made or changed to the sha256 (hex) of
    its new content. The paths are written as in `ToolCall.changes`. For a deleted file, the digest is empty. Caches
    are left out. `files` is empty if the program could not run; `view.problem` then says why. `texts` has the
    contents of the first TRIAL_TEXTS text files, with at most TRIAL_CHARACTERS characters in all."""

    view: CommandView
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])


class EvidenceSource(Protocol):
    """Read-only access to the present files of one subtask, or of the whole task if it belongs to the validator of
    the task (R4b)."""

    async def file(self, path: str) -> FileView:
        """Read a file. Relative paths are tried below the project root, then below the workspace. Never raises."""
        ...

    async def command(self, command: str) -> CommandView:
        """Run a shell command in a throw-away layer, with limits for time and output. Never raises."""
        ...

    async def trial(self, language: Language, program: str) -> Trial:
        """Run a whole program in a copy of the workspace as it was *before* the changes of this subtask. For R4b
        the copy shows the workspace as it is now.

        The run has a time limit, and its changes are discarded. If the workspace is too large for a copy, the
        result of the trial says so. Never raises.
        """
        ...

    async def difference(self, limit: int = DIFFERENCE_CHARACTERS) -> str:
        """Return the changes that this subtask (for R4b: the task) has made so far, as unified diffs that are cut
        at `limit` characters.

        A binary file, a deletion, a link or a change of mode is described in one line. The text is empty if nothing
        changed. Never raises: the text names files that cannot be read.
        """
        ...
