"""The changes of a task for its page, with the requests to apply, discard and undo them, and the page "what if"."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from artoo.contracts.changes import UndoableTask
from artoo.contracts.confirmation import PERSON
from artoo.contracts.errors import ConfigurationError, SandboxError
from artoo.contracts.settling import ClassifiedChange, Review, Settled
from artoo.control.hyperparameters import Hyperparameters
from artoo.runtime.approvals.prompt_store import OpenQuestion
from artoo.runtime.changes.find_pending import find_pending
from artoo.runtime.changes.pending_changes import Pending
from artoo.runtime.changes.settlement_history import Became, SettledBooks
from artoo.runtime.changes.startup_recovery import recover_earlier
from artoo.runtime.changes.undo import can_be_undone, put_back
from artoo.runtime.replay.recording import read_recording
from artoo.runtime.replay.what_if import Recomputed, changed, law_of
from artoo.runtime.replay.what_if import what_if as recompute
from artoo.tasklog.reader import TaskLogReader
from artoo.web.site import Site, directory_of, form_of, page, paths_of, site_of, value
from artoo.words.repositories import group_of, is_object, objects_of, told


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """The changes of a task. `review`: those to decide about; `digest` binds the decision to what is shown.

    `question`: the running task that asks about them. Without a review, `rows` are the changes at the task's end,
    and `became` what has become of them.
    `why`: the reason why pending changes cannot be shown.
    """

    rows: tuple[ClassifiedChange | Together, ...] = ()
    review: Review | None = None
    digest: str = ""
    question: OpenQuestion | None = None
    pending: Pending | None = None
    undoable: UndoableTask | None = None
    became: tuple[Became, ...] = ()
    why: str = ""

    @property
    def blocked(self) -> frozenset[str]:
        """Return the paths that cannot be applied, because the user has changed them since."""
        return frozenset() if self.review is None else frozenset(one.path for one in self.review.conflicts)

    @property
    def applicable(self) -> bool:
        """Check whether any of the changes can be applied."""
        return self.review is not None and any(one.path not in self.blocked for one in self.review.changes)


async def change_set(
    site: Site,
    task_id: str,
    asked: tuple[OpenQuestion, ...],
    settled: Settled | None,
    language: str,
    *,
    running: bool,
) -> ChangeSet:
    """Return the changes that a running task asks about, or those that an ended task left pending or applied."""
    question = next((one for one in asked if one.request.review is not None), None)
    if question is not None:
        review = question.request.review
        return ChangeSet(_rows(review, language), review, question.request.digest, question)
    # A running task owns its workspace, and a reader of the workspace would prevent the task from applying it.
    if running:
        return ChangeSet()
    pending, why = await asyncio.to_thread(_pending, site, task_id)
    review, digest = None, ""
    if pending is not None and not pending.cut_off:
        try:
            # The digest is computed first, so that the approval is refused if the changes differ a moment later.
            digest = await pending.digest()
            review = await pending.diff()
        except SandboxError as error:
            why = str(error)
    undoable = await asyncio.to_thread(_undoable, site, task_id)
    books = await asyncio.to_thread(SettledBooks.of, site.home)
    became = books.afterwards(task_id, settled).became
    return ChangeSet(_rows(review or settled, language), review, digest, None, pending, undoable, became, why)


async def difference(request: Request) -> Response:
    """Redirect to the changes on the page of the task."""
    return RedirectResponse(f"/tasks/{directory_of(request)[0]}#changes", 303)


@dataclass(frozen=True, slots=True)
class Together:
    """The new git objects of one repository as one row, because users do not choose a commit's files one by one."""

    where: str
    said: str
    changes: tuple[ClassifiedChange, ...]

    @property
    def paths(self) -> str:
        """Return the paths, one per line. This is safe, because these paths contain only printable characters."""
        return "\n".join(one.path for one in self.changes)


def _rows(shown: Review | Settled | None, language: str) -> tuple[ClassifiedChange | Together, ...]:
    """Build a row for each change. All git objects of a repository share one row, at the place of the first."""
    rows: list[ClassifiedChange | Together] = []
    if shown is None:
        return ()
    blocked = {one.path for one in shown.conflicts}
    groups = objects_of(one for one in shown.changes if one.path not in blocked)
    for change in shown.changes:
        if change.path in blocked or not is_object(change):
            rows.append(change)
        elif together := groups.pop(group_of(change), None):
            rows.append(Together(group_of(change)[0], told(together, language), tuple(together)))
    return tuple(rows)


async def apply(request: Request) -> Response:
    """Apply the changes that the page showed, or only the chosen paths."""
    task_id, _ = directory_of(request)
    form = await form_of(request)
    paths = paths_of(form)
    if value(form, "what") == "chosen" and not paths:
        raise ConfigurationError("choose at least one path")
    pending = await asyncio.to_thread(find_pending, site_of(request).config, task_id)
    chosen = paths if value(form, "what") == "chosen" else None
    done = await pending.apply(chosen, digest=value(form, "digest"))
    if not done.applied and done.state == "pending":
        raise SandboxError(done.reason)
    return RedirectResponse(f"/tasks/{task_id}#changes", 303)


async def discard(request: Request) -> Response:
    """Discard the pending changes of the task."""
    task_id, _ = directory_of(request)
    form = await form_of(request)
    pending = await asyncio.to_thread(find_pending, site_of(request).config, task_id)
    if not pending.cut_off and await pending.digest() != value(form, "digest"):
        raise SandboxError("the changes differ from what was shown; look at them again")
    await pending.discard()
    return RedirectResponse(f"/tasks/{task_id}#changes", 303)


async def undo(request: Request) -> Response:
    """Undo the changes of the task, and report each path."""
    task_id, _ = directory_of(request)
    await form_of(request)
    report = await asyncio.to_thread(put_back, site_of(request).config, task_id, by=PERSON)
    return page(request, "undone.html", task_id=task_id, report=report)


async def what_if(request: Request) -> Response:
    """Recompute the decisions under other hyperparameters, from the log alone."""
    task_id, directory = directory_of(request)
    given = {
        name: said.strip() for name, said in request.query_params.multi_items() if name in NAMES and said.strip()
    }
    law, rounds = await asyncio.to_thread(_recomputed, directory, given)
    return page(request, "what_if.html", task_id=task_id, names=NAMES, given=given, law=law, rounds=rounds)


NAMES = {
    "delta": "δ", "rho": "ρ", "theta": "θ", "epsilon": "ε", "alpha": "α", "beta": "β", "lambda_": "λ",
    "max_replans": "max replans", "gradient": "gradient",
}  # fmt: skip


def _recomputed(directory: Path, given: dict[str, str]) -> tuple[Hyperparameters, tuple[Recomputed, ...]]:
    recording = read_recording(TaskLogReader(directory))
    law = law_of(recording)
    lines = [f"{name}={said}" for name, said in given.items()]
    return law, tuple(recompute(recording.stream, changed(law, lines) if lines else law))


def _pending(site: Site, task_id: str) -> tuple[Pending | None, str]:
    recover_earlier(site.config)
    try:
        return find_pending(site.config, task_id), ""
    except ConfigurationError:
        return None, ""
    except SandboxError as error:
        return None, str(error)


def _undoable(site: Site, task_id: str) -> UndoableTask | None:
    known = can_be_undone(site.config)
    return next((one for one in known if one.task_id == task_id), None)
