"""What an approval would change, laid out as it is for a person, and the change itself."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.changes import Conflict, printable_path
from artoo.contracts.confirmation import ConfirmationRequest
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ApplyMode, ChangeClass, Review
from artoo.runtime.team.submissions import Intent, Submissions
from artoo.tools.review import question_of, review_of
from artoo.world.closing import ClosingView, opened
from artoo.world.difference import Difference
from artoo.world.journal import records_of
from artoo.world.kept_notes import notes_of
from artoo.world.pending import SettledRecord
from artoo.world.settle import Told
from artoo.world.union import RealFiles, Union

_LISTED = 1_000
"""Paths that stand on record of one approval."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A submission beside the person's files as they are now. An approval is bound to `digest`.

    `question` is what the operator is asked; `review` has every change with its diff. `asks`: why they must be
    asked, one reason a line; empty: nobody needs to. `project`: where the task worked.
    """

    project: Path
    question: ConfirmationRequest
    review: Review
    asks: tuple[str, ...]

    @property
    def digest(self) -> str:
        """That of exactly these changes."""
        return self.question.digest

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """What the person changed meanwhile: with one, nothing can be applied."""
        return self.review.conflicts


def propose(submissions: Submissions, board_task: str, mode: ApplyMode) -> Proposal | None:
    """Looks at what was handed in; None: there are no files. Blocking; raises SandboxError."""
    with _at_rest(submissions, board_task) as view:
        if view is None:
            return None
        found = view.difference()
        review = review_of(found, board_task, RealFiles(), Union(view.place.strata()))
        project = view.place.record().roots.project
    return Proposal(project, question_of(found, review, "en"), review, tuple(_asks(found, mode)))


def _asks(found: Difference, mode: ApplyMode) -> Generator[str]:
    loud = [one for one in found.classes if one.change_class is not ChangeClass.SILENT]
    yield from (f"{one.path}: {one.reason}" for one in loud)
    if found.flood is not None:
        yield found.flood
    if mode is ApplyMode.ASK and found.silent and not found.empty:
        yield "nothing takes effect unasked (apply: ask)"


def carry_out(submissions: Submissions, board_task: str, approved: Intent) -> tuple[Conflict, ...]:
    """Makes exactly what was approved real, all or nothing, undone by `artoo undo <board task>`. Blocking.

    May be repeated after a crash: what took effect is not done again. Conflicts are returned, and nothing is
    changed then. Raises SandboxError when it is not as it was approved, or the system refuses.
    """
    with _at_rest(submissions, board_task) as view:
        if view is not None:
            found = view.difference()
            if found.conflicts:
                return found.conflicts
            view.drop_forks()
            note = f"approved by {approved.actor}"
            told = _told(submissions, board_task, approved, found)
            return view.apply(found, digest=approved.digest, note=note, told=told).report.conflicts
    if not took_effect(submissions, board_task, approved.digest):
        raise SandboxError(f"what task {board_task} handed in is not there any more: reject it")
    return ()


def _told(submissions: Submissions, board_task: str, approved: Intent, found: Difference) -> Told:
    """On record with what else was settled: it is known when the task is off the board, too."""
    line = SettledRecord(
        at=time.time(),
        task_id=board_task,
        what="applied",
        by=approved.actor,
        request=submissions.asked(board_task),
        digest=found.digest,
        count=len(found.effects),
        paths=tuple(printable_path(effect.path) for effect in found.effects[:_LISTED]),
    )
    return Told(settled=line)


def took_effect(submissions: Submissions, board_task: str, digest: str | None = None) -> bool:
    """Whether the journal says that a difference of this task (None: any) was applied, and not undone since.

    Blocking.
    """
    undo_home = submissions.home / "undo"
    notes = notes_of(undo_home, board_task)
    if digest is None:  # what a person applied by hand has no note
        return bool(notes) or any(
            record.done and not record.is_rest for record in records_of(undo_home, board_task)
        )
    return any(note.call == digest for note in notes)


@contextmanager
def _at_rest(submissions: Submissions, board_task: str) -> Generator[ClosingView | None]:
    """The task's view with nothing under way in it; None when there is none, or it has been applied whole."""
    place = submissions.view(board_task)
    if not place.exists:
        yield None
        return
    with opened(place, submissions.home) as view:
        yield view if place.exists else None
