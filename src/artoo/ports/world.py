"""The port through which a task sees and changes the person's files: one copy-on-write view (SPEC section 8).

    the files ◄─ settled once ── View of a task ◄─ joined or dropped ── fork of a subtask ◄─ folded ── a command

Nothing that happens in a view changes the person's files. A view stands at a command's boundary at any time: what a
stopped or crashed command did is gone, what an ended one did is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from artoo.contracts.changes import Change, Clash
from artoo.contracts.settling import ClassifiedChange
from artoo.ports import printing
from artoo.ports.sandbox import ActNote, Heard, Limits, Roots, ViewRun, unheard


class Files(Protocol):
    """The files as a view shows them. Paths are absolute. Every method blocks: call it in a thread."""

    def resolve(self, path: Path) -> Path:
        """The path with links followed as the kernel would inside the view; what is missing keeps its name.

        Raises OSError (ELOOP) for a circle.
        """
        ...

    def at(self, path: Path) -> Path | None:
        """Where on this machine that which a resolved path names lies at this moment; None when nothing is there.

        To be opened or looked at (`lstat`), never shown, kept or written to. The last name is not followed when it
        is a link. For a directory only its own attributes hold: ask `names` for what is in it.
        """
        ...

    def names(self, directory: Path) -> tuple[str, ...]:
        """The names in a resolved directory, sorted by their bytes. Raises OSError as os.listdir does."""
        ...


def unnoted(ended: object) -> None:
    """Nothing is kept of how it ended."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run in a view, in the project root. `argv[0]` is looked up on the sandbox's PATH.

    `read_only`: what it changes is reported and dropped. `unconfined`: a person has said yes to this very program
    running for real; only tiers that cannot hold a view honour it. `env` is laid over the cleaned environment.
    `hosts`: where it may connect to (`HOST:PORT`), each allowed by the person or a policy; empty: no network.
    `heard` is told of each connection, `printed` of what it writes, while it runs. `keep_env` names variables that
    pass although they look like keys. `note` is asked, in a thread, when it has ended and changed something: its
    answer is in the view if the changes are.
    """

    argv: tuple[str, ...]
    limits: Limits = field(default_factory=Limits)
    stdin: bytes | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    read_only: bool = False
    unconfined: bool = False
    hosts: tuple[str, ...] = ()
    heard: Heard = unheard
    printed: printing.Heard = printing.unheard
    keep_env: frozenset[str] = frozenset()
    note: Callable[[ViewRun], ActNote | None] = unnoted


class View(Protocol):
    """One task's view, or a fork of it. One command at a time: further ones wait."""

    @property
    def roots(self) -> Roots:
        """The person's directories, as they are named outside and inside."""
        ...

    @property
    def files(self) -> Files:
        """What is there now."""
        ...

    async def run(self, program: Program) -> ViewRun:
        """Runs a program to its end; afterwards none of its processes is left and the view holds what it did.

        Raises SandboxError when it cannot be contained or its changes cannot be read; then nothing of it is in the
        view. Cancelling ends it, and nothing of it is in the view.
        """
        ...

    async def write(
        self, path: Path, content: bytes, note: Callable[[tuple[Change, ...]], ActNote | None] = unnoted
    ) -> tuple[Change, ...]:
        """Writes one file, making directories as needed; links are followed. `note`: as that of a Program.

        Raises SandboxError.
        """
        ...

    async def notes(self) -> Mapping[str, ActNote]:
        """How calls ended whose changes are in the view or in a fork of it, by act; of earlier processes too.

        Raises SandboxError when they cannot be read.
        """
        ...

    async def changes(self) -> tuple[Change, ...]:
        """All that this view (of a fork: the fork alone) changes, against what is below it, in path order."""
        ...

    async def classes(self) -> tuple[ClassifiedChange, ...]:
        """What these changes mean for the person, judged as when they are settled. Raises SandboxError."""
        ...

    def fork(self, name: str) -> View:
        """A view of its own over this one as it is now. Free until something is written in it; the same name is the
        same fork, also in a later process. While forks are open nothing may be run or written in this view."""
        ...

    async def join(self, names: Sequence[str]) -> tuple[Clash, ...]:
        """Folds the named forks into this view, in that order, and closes them. May be repeated after a crash.

        A path that two of them left differently keeps the earlier one's version, and is reported.
        """
        ...

    async def drop(self, name: str) -> None:
        """Forgets a fork and all that was done in it. Idempotent."""
        ...

    async def close(self) -> None:
        """Lets go of the view, so that another process may go on in it or settle it. Idempotent."""
        ...


class OpenView(Protocol):
    """Opens the view of a task; nothing is made on disk before its first command or write."""

    def __call__(self, task_id: str, roots: Roots) -> View:
        """The task's view as it stands: another process's work in it is found again."""
        ...
