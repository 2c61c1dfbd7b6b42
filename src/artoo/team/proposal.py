"""Compare a submission with the user's files, and apply the approved changes."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import Conflict
from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ApplyMode, ChangeClass, Review
from artoo.runtime.changes.submissions import Intent, Submissions
from artoo.tools.settlement.review import question_of, review_of
from artoo.workspace.changes.change_set import ChangeSet
from artoo.workspace.settlement import finish
from artoo.workspace.settlement.service import Subject, opened


@dataclass(frozen=True, slots=True)
class Proposal:
    """A submission that was compared with the user's current files. An approval is bound to its `digest`.

    `question` is the question to the operator. `review` contains every change with its diff. `asks`: the reasons
    why the operator must be asked, one on each line. It is empty if no approval is needed. `project`: the directory
    in which the task worked.
    """

    project: Path
    question: ConfirmationRequest
    review: Review
    asks: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Return the digest of exactly these changes."""
        return self.question.digest

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Return the conflicts with changes of the user. If there are any, nothing can be applied."""
        return self.review.conflicts


def propose(submissions: Submissions, board_task: str, mode: ApplyMode) -> Proposal | None:
    """Return the review of a submission. Return None if it contains no files. Blocking. Raises SandboxError."""
    directory = submissions.workspace(board_task)
    if not directory.exists:
        return None
    with opened(directory, submissions.home) as settlement:
        if settlement is None:
            return None
        found = settlement.review()
        with settlement.files() as (before, after):
            review = review_of(found, board_task, before, after)
        project = directory.record().roots.project
    return Proposal(project, question_of(found, review, "en"), review, tuple(_asks(found, mode)))


def _asks(found: ChangeSet, mode: ApplyMode) -> Generator[str]:
    loud = [one for one in found.all_classes if one.change_class is not ChangeClass.SILENT]
    yield from (f"{one.path}: {one.reason}" for one in loud)
    if found.flood is not None:
        yield found.flood
    if mode is ApplyMode.ASK and found.silent and not found.empty:
        yield "nothing takes effect without approval (apply: ask)"


def carry_out(submissions: Submissions, board_task: str, approved: Intent) -> tuple[Conflict, ...]:
    """Apply exactly the approved changes, all of them or none. `artoo undo <board task>` undoes them. Blocking.

    The call may be repeated after a crash. If there are conflicts, they are returned and nothing is changed. Raises
    SandboxError if the changes are not the approved ones, or if the operating system reports an error.
    """
    directory = submissions.workspace(board_task)
    if directory.exists:
        with opened(directory, submissions.home, Subject(request=submissions.asked(board_task))) as settlement:
            if settlement is not None:
                found = settlement.review()
                if found.all_conflicts:
                    return found.all_conflicts
                if found.digest != approved.digest:
                    raise SandboxError("the changes are no longer what was approved: look at them again")
                return settlement.apply(found, by=approved.actor).conflicts
    if not took_effect(submissions, board_task, approved.digest):
        raise SandboxError(f"what task {board_task} handed in is not there any more: reject it")
    return ()


def took_effect(submissions: Submissions, board_task: str, digest: str | None = None) -> bool:
    """Return whether a change set of this task was applied and has not been undone since. `digest`: the digest of
    the change set (None: of any). Blocking."""
    return finish.took_effect(submissions.home, board_task, digest)
