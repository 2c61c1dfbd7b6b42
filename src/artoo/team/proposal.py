"""Show the changes of an approval as for any user, and apply them."""

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
    """A submission compared with the user's files as they are now. An approval is bound to `digest`.

    `question` is what the operator is asked; `review` has every change with its diff. `asks`: why they must be
    asked, one reason a line; empty: no one needs to approve. `project`: where the task worked.
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
        """Return the user's conflicting changes: with a conflict, nothing can be applied."""
        return self.review.conflicts


def propose(submissions: Submissions, board_task: str, mode: ApplyMode) -> Proposal | None:
    """Return the review of a submission; None: there are no files. Blocking; raises SandboxError."""
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
    """Apply exactly what was approved, all or nothing; `artoo undo <board task>` undoes it. Blocking.

    Idempotent after a crash. Conflicts are returned, and nothing is changed then. Raises SandboxError when it is
    not as it was approved, or the system refuses.
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
    """Check whether a change set of this task (None: any) was applied, and not undone since. Blocking."""
    return finish.took_effect(submissions.home, board_task, digest)
