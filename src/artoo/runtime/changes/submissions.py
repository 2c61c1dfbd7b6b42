"""The documents of submitted board work on disk, such as request, dossier, note and `approval.json`.

The files of the submitted work are in its workspace.

<home>/workspaces/<board task>/              the submitted work
<home>/workspaces/<board task> attempt/      the work of an agent until it submits it; begins as a copy of the above
<home>/submissions/<board task>/asked        the task's text, so that it is known without the database
<home>/submissions/<board task>/<number>/
    dossier.json     the evidence, and the digest of the changes
    approval.json    the approval; once it is written, the apply is completed even after a crash
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, ValidationError

from artoo.contracts.agents import SubmittedWork
from artoo.contracts.base import Contract
from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_durably
from artoo.runtime.changes.find_pending import ATTEMPT
from artoo.sandbox.remove_tree import remove_tree
from artoo.workspace.directory import PATIENCE_SECONDS, WorkspaceDirectory, Workspaces
from artoo.workspace.settlement.finish import discard
from artoo.workspace.settlement.history import SettledRecord

_M = TypeVar("_M", bound=BaseModel)

_ASKED = "asked"
_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), ": free space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), ": make it yours again"),
}


class Intent(Contract):
    """An approval that was given, and whose apply may not be complete. `digest` binds it to the change set that was
    shown. `actor` may be a policy instead of a user."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    actor: str
    reason: str
    submission: int
    digest: str


@contextmanager
def writing(place: Path) -> Generator[None]:
    """Convert an OSError at `place` to SandboxError, the error that callers expect."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "")
        raise SandboxError(
            f"{_named(error) or place} cannot be used ({error.strerror or error}){remedy}"
        ) from error


def _named(error: OSError) -> str:
    """Return the path in the error if a user can find it. Return "" for descriptors, and for paths relative to open
    directories.
    """
    name: object = error.filename
    path = os.fsdecode(name) if isinstance(name, str | bytes) else ""
    return path if path.startswith("/") and not path.startswith("/proc/self/") else ""


@dataclass(frozen=True, slots=True)
class Submission:
    """The documents of one submission. The submission may not exist. All methods block, and those that write raise
    SandboxError."""

    place: Path

    def keep(self, work: SubmittedWork) -> None:
        """Write the dossier durably."""
        self._write("dossier.json", work)

    def work(self) -> SubmittedWork | None:
        """Return the submitted work; None if it cannot be read."""
        return self._read("dossier.json", SubmittedWork)

    def note(self, intent: Intent) -> None:
        """Write the approval durably."""
        self._write("approval.json", intent)

    def noted(self) -> Intent | None:
        """Return the approval whose apply is not completed yet. Return None if there is none."""
        return self._read("approval.json", Intent)

    def forget_approval(self) -> None:
        """Delete the approval, so that a restart does not complete its apply."""
        with writing(self.place):
            (self.place / "approval.json").unlink(missing_ok=True)

    def _write(self, name: str, content: Contract) -> None:
        with writing(self.place):
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_durably(self.place / name, content.model_dump_json().encode())

    def _read(self, name: str, kind: type[_M]) -> _M | None:
        try:
            return kind.model_validate_json((self.place / name).read_bytes())
        except (OSError, ValidationError):
            return None


@dataclass(frozen=True, slots=True)
class Submissions:
    """The documents of all board tasks of one home (a resolved path), and the workspaces of these tasks."""

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "submissions"

    def of(self, board_task: str, number: int) -> Submission:
        """Return the submission with this number."""
        return Submission(self._papers(board_task) / str(number))

    def workspace(self, board_task: str) -> WorkspaceDirectory:
        """Return the workspace for the submitted work on a task. It need not exist."""
        return Workspaces(self.home).directory(board_task)

    def attempt(self, board_task: str) -> WorkspaceDirectory:
        """Return the workspace in which an agent works on a task until it submits the work."""
        return Workspaces(self.home).directory(board_task + ATTEMPT)

    def adopt_attempt(self, board_task: str) -> None:
        """If an agent has made an attempt at the task, replace the submitted work by it. Idempotent. The call may
        also be repeated after a crash.

        Raises SandboxError.
        """
        attempt, submitted = self.attempt(board_task), self.workspace(board_task)
        if not attempt.exists:
            return
        with (
            writing(submitted.base),
            attempt.locked(PATIENCE_SECONDS),
            submitted.locked(PATIENCE_SECONDS),
        ):
            # Another process has already made it the submitted work, after the first check.
            if not attempt.exists:
                attempt.remove()
                return
            record = attempt.record()
            attempt.write_record(record.model_copy(update={"task_id": board_task}))
            # Nothing is lost, because the attempt began as a copy of the submitted work.
            submitted.remove()
            attempt.base.rename(submitted.base)

    def enter(self, board_task: str, text: str) -> None:
        """Record that a task has a workspace, so that the workspace can be found even if the task is deleted from
        the board. Raises SandboxError."""
        papers = self._papers(board_task)
        with writing(papers):
            papers.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_durably(papers / _ASKED, text.encode("utf-8", "replace"))

    def asked(self, board_task: str) -> str:
        """Return the text of a task that has documents here. Return an empty string for any other task. Blocks.
        Raises nothing."""
        try:
            return (self._papers(board_task) / _ASKED).read_text("utf-8", "replace")
        except OSError:
            return ""

    def lock(self, board_task: str) -> Path:
        """Return the file that is locked while a decision about the task's submission is made."""
        return self.folder / f".ruling-{self._papers(board_task).name}"

    def discard(self, board_task: str, actor: str) -> None:
        """Delete all documents of a task and its workspaces. If changes had been submitted, their deletion is
        recorded.

        Raises SandboxError, for example if a process uses one of the workspaces.
        """
        papers = self._papers(board_task)
        with writing(papers):
            for directory in (self.attempt(board_task), self.workspace(board_task)):
                if not directory.base.is_dir():
                    continue
                with directory.locked(PATIENCE_SECONDS):
                    if directory.task_id == board_task and self._handed_in(board_task):
                        discard(directory, self.home, self.discarded(board_task, actor))
                    else:
                        directory.remove()
            remove_tree(papers)

    def discarded(self, board_task: str, actor: str, run: str = "") -> SettledRecord:
        """Return the record for the history that a task's changes, or those of one of its runs, were deleted.
        Blocks."""
        request = self.asked(board_task)
        return SettledRecord(at=time.time(), task_id=run or board_task, what="discarded", by=actor, request=request)

    def listed(self) -> tuple[str, ...]:
        """Return the ids of all tasks that have documents here. Raises SandboxError."""
        with writing(self.folder):
            names = sorted(unquote(place.name) for place in self.folder.iterdir()) if self.folder.is_dir() else []
        return tuple(name for name in names if not name.startswith("."))

    def _handed_in(self, board_task: str) -> bool:
        """Return whether a submission of the task contains changes of files."""
        papers = self._papers(board_task)
        numbers = papers.iterdir() if papers.is_dir() else ()
        works = (Submission(place).work() for place in numbers if place.is_dir())
        return any(work is not None and bool(work.digest) for work in works)

    def _papers(self, board_task: str) -> Path:
        return self.folder / quote(board_task, safe="").replace(".", "%2E")
