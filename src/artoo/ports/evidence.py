"""Define the validators' view of a task's files as they are now, and of throw-away runs.

Everything here looks into the task's workspace (`ports.workspace`): R4a's source tells the changes of its subtask,
R4b's those of the task. Nothing of it changes the workspace, and no method raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

Language = Literal["bash", "python"]
"""The languages of whole programs."""

# How much of a difference is shown when the caller has no better bound.
DIFFERENCE_CHARACTERS = 20_000

# How many of the paths that a check would write are told, in path order.
MOST_WRITTEN = 2_000

TRIAL_TEXTS = 20
# How many of the files that a trial left are read, and how much of them together.
TRIAL_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class FileView:
    """A file as a check sees it: its kind, size in bytes, and text (None when absent, binary or too large).

    `sha256` (hex) is of the whole content of a regular file that could be read, however large; else empty. A link
    that leads nowhere `is_broken_link`, and what it names does not exist. `problem`: why it could not be looked at;
    that nothing is there is none.
    """

    exists: bool
    is_directory: bool = False
    is_broken_link: bool = False
    size: int = 0
    text: str | None = None
    problem: str | None = None
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class CommandView:
    """The end of a read-only command. `exit_code` None: it did not end by itself (`problem` says why). `output` is
    all that it printed, and ends with `errors`, its error output.

    `written`: printable paths that it left otherwise than they are, all of which is dropped; directories end with a
    slash. Caches, and files that it wrote again with the same bytes, are left out.
    """

    exit_code: int | None
    output: str
    problem: str | None = None
    written: tuple[str, ...] = ()
    errors: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """The end of a program that ran in a throw-away copy of the workspace.

    `files`: every regular file that it made or changed, as its printable path (the form of `ToolCall.changes`),
    with the sha256 (hex) of what it left there; a file that it deleted has the empty digest. Caches are left out.
    Empty when the program could not be run (`view.problem` says why). `texts`: the content of text files,
    of the first TRIAL_TEXTS as far as TRIAL_CHARACTERS go.
    """

    view: CommandView
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])


class EvidenceSource(Protocol):
    """Read-only access to the files as one subtask (R4b: the task) sees them at this moment."""

    async def file(self, path: str) -> FileView:
        """Look at a file; relative paths start at the project root, then the workspace. Never raises."""
        ...

    async def command(self, command: str) -> CommandView:
        """Run a shell command in a throw-away layer, bounded in time and output. Never raises."""
        ...

    async def trial(self, language: Language, program: str) -> Trial:
        """Run a whole program in a copy of the workspace *before* this subtask's changes (R4b: as it is now).

        Bounded in time; nothing of it stays. Where the workspace is too large, the trial says so. Never raises.
        """
        ...

    async def difference(self, limit: int = DIFFERENCE_CHARACTERS) -> str:
        """Return the changes of this subtask (R4b: of the task) so far, as unified diffs, cut at `limit`
        characters.

        A binary file, a deletion, a link or a change of mode has one line that says so. Empty when nothing changed.
        Never raises: the text names files that cannot be read.
        """
        ...
