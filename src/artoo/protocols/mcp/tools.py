"""The MCP tools (run, resume, status, diff, apply, undo, recall, audit), with the default wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, ParamSpec, TypeVar

from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import InputRequiredResult
from pydantic import Field

from artoo.contracts.audit import AuditReport
from artoo.contracts.confirmation import PERSON, ConfirmationRequest, Words
from artoo.contracts.errors import ArtooError
from artoo.contracts.settling import BY_NAME, ApplyMode, Review
from artoo.contracts.tags import pair_named
from artoo.protocols.handed import HandedTask
from artoo.protocols.intake import Intake
from artoo.protocols.looking import Looking, id_of
from artoo.protocols.mcp.attending import (
    Asked,
    Call,
    answered,
    ask_now,
    asking,
    attend,
    caller_of,
    can_ask,
    is_modern,
)
from artoo.protocols.reports import DifferenceReport, PendingTask, Report, SettledReport, TaskReport, settled_report
from artoo.redaction import Redactor
from artoo.runtime.app.run_options import Budgets, RunOptions
from artoo.runtime.memory.books import Advice, advice_about

P = ParamSpec("P")
T = TypeVar("T")

WAIT_SECONDS = 45.0
"""Number of seconds that a call waits for its task by default. It is less than a minute, because most clients give
up after that time."""

TaskId = Annotated[str, Field(description="the task's id, or the beginning of it", max_length=100)]
Wait = Annotated[
    float,
    Field(ge=0, le=3_600, description="seconds to wait for the end; then the task continues: ask `result`"),
]
Paths = Annotated[
    list[str] | None,
    Field(
        min_length=1, max_length=1_000, description="only these paths: as `diff` names them, or from the project"
    ),
]


def said_plainly(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Convert artoo's own errors to errors of the tool, with the same text."""

    @wraps(tool)
    async def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await tool(*args, **kwargs)
        except ArtooError as error:
            raise ToolError(str(error)) from error

    return wrapped


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools, over one intake. `project` is the default directory in which tasks work."""

    intake: Intake
    looking: Looking
    project: Path

    @said_plainly
    async def run(
        self,
        call: Call,
        request: Annotated[str, Field(description="the request, in plain words", min_length=1)],
        project: Annotated[str | None, Field(description="absolute directory in which to work")] = None,
        checks: Annotated[
            list[str] | None, Field(max_length=20, description="commands that must succeed in the end")
        ] = None,
        ask: Annotated[bool, Field(description="let nothing take effect unasked, not even new files")] = False,
        max_seconds: Annotated[float | None, Field(gt=0, description="the task's time budget")] = None,
        max_calls: Annotated[int | None, Field(gt=0, description="the task's budget of model calls")] = None,
        wait_seconds: Wait = WAIT_SECONDS,
    ) -> TaskReport | InputRequiredResult:
        """Hand artoo a task. It plans, works in a workspace of its own, and checks the result. Changes that need
        consent do not take effect without it. Then the status is `pending`; use `diff`, and `apply` or `discard`. A
        task that takes longer than `wait_seconds` goes on; ask `result` for it by its task_id."""
        if project and not Path(project).is_absolute():
            raise ToolError(f"project {project!r} is relative; give the absolute path of a directory")
        task = self._asked_again(call)
        if task is None:
            options = RunOptions(
                project=Path(project) if project else self.project,
                apply=ApplyMode.ASK if ask else None,
                checks=tuple(checks or ()),
                budgets=Budgets(seconds=max_seconds, calls=max_calls),
            )
            task = await self.intake.begin(request, options, caller_of(call), asks=can_ask(call))
        return await self._attended(task, call, wait_seconds, ends_it=True)

    @said_plainly
    async def resume(
        self, call: Call, task_id: TaskId, wait_seconds: Wait = WAIT_SECONDS
    ) -> TaskReport | InputRequiredResult:
        """Resume a task that was interrupted or whose process died. Finished work is not repeated."""
        task = self._asked_again(call)
        if task is None:
            task = await self.intake.resume(id_of(task_id), caller_of(call), asks=can_ask(call))
        return await self._attended(task, call, wait_seconds, ends_it=True)

    @said_plainly
    async def result(
        self, call: Call, task_id: TaskId, wait_seconds: Wait = WAIT_SECONDS
    ) -> TaskReport | InputRequiredResult:
        """Return the result of a task, and wait for one that still runs."""
        task = self._asked_again(call) or self.intake.find(id_of(task_id))
        if task is None:
            return await asyncio.to_thread(self.looking.ended, task_id)
        return await self._attended(task, call, wait_seconds, ends_it=False)

    @said_plainly
    async def status(self) -> HomeStatus:
        """List running tasks, pending changes, and the latest tasks."""
        at_work = self.intake.running()
        running = tuple(map(self.looking.handed, at_work))
        waiting = await asyncio.to_thread(self.looking.waiting)
        latest = await asyncio.to_thread(self.looking.latest, 10, at_work)
        return HomeStatus(running=running, waiting=waiting, latest=latest)

    @said_plainly
    async def cancel(self, task_id: TaskId) -> TaskReport:
        """Ask a task that runs here to end now. Its work is kept, and can be looked at, discarded or resumed."""
        task = self.intake.find(id_of(task_id))
        if task is None:
            return await asyncio.to_thread(self.looking.ended, task_id)
        self.intake.interrupt(task)
        # The result of an interrupted task comes a moment after the interruption.
        while not task.ended:
            await task.changed(task.told)
        return await asyncio.to_thread(self.looking.handed, task)

    @said_plainly
    async def send(
        self, task_id: TaskId, text: Annotated[str, Field(description="the message for the task", min_length=1)]
    ) -> TaskReport:
        """Send a message to a task that runs here, which reads it before its next turn. If the task waits for an
        answer in words, the message is the answer."""
        task = self.intake.find(id_of(task_id))
        if task is None:
            raise ToolError(f"no task {task_id} runs here; `status` lists those that do")
        self.intake.send(task, text, "mcp")
        return await asyncio.to_thread(self.looking.handed, task)

    @said_plainly
    async def diff(self, task_id: TaskId) -> DifferenceReport:
        """Return all changes of a task, with diffs of small texts, most dangerous first, and the conflicts with
        later changes of the user. `apply` needs the digest."""
        return await self.looking.difference(await asyncio.to_thread(self.looking.pending, task_id))

    @said_plainly
    async def apply(
        self,
        call: Call,
        task_id: TaskId,
        digest: Annotated[str, Field(description="the digest from `diff`: only the shown changes are applied")],
        paths: Paths = None,
        rest: Annotated[bool, Field(description="leave out conflicts, and apply the rest")] = False,
    ) -> SettledReport | InputRequiredResult:
        """Apply the changes of a task, or only some paths. If the user has changed the same paths meanwhile,
        nothing is applied. `undo` restores the files."""
        pending = await asyncio.to_thread(self.looking.pending, task_id)
        # The paths are checked before the user is asked about them.
        named = None if paths is None else await pending.named(paths)
        chosen = _chosen(await pending.diff(), named)
        if can_ask(call) and any(one.change_class in BY_NAME for one in chosen.changes):
            question = ConfirmationRequest(digest=digest, title=f"Apply what task {task_id} did?", review=chosen)
            clean = self.looking.clean
            try:
                if is_modern(call) and call.request_state is None:
                    return asking(question, pending.task_id, clean)
                said = answered(question, call) if is_modern(call) else await ask_now(question, call, clean)
                said = None if isinstance(said, Words) else said
            except ValueError as error:
                why = f"the question is too long for a form: {error}"
                raise ToolError(
                    f"{why}. Name some `paths` at a time, or leave it to the person's terminal"
                ) from error
            if said is None or not said.is_yes:
                return SettledReport(task_id=pending.task_id, state="pending", reason="the person has not said yes")
        by = f"{PERSON} through {caller_of(call).label}"
        settled = await pending.apply(named, digest=digest, rest=rest, by=by)
        return settled_report(pending.task_id, settled, self.looking.clean)

    @said_plainly
    async def discard(self, call: Call, task_id: TaskId) -> SettledReport:
        """Discard the changes of a task. The files stay as they are. Data that was sent is not called back."""
        pending = await asyncio.to_thread(self.looking.pending, task_id)
        settled = await pending.discard(by=f"{PERSON} through {caller_of(call).label}")
        return settled_report(pending.task_id, settled, self.looking.clean)

    @said_plainly
    async def undo(self, call: Call, task_id: TaskId) -> PutBack:
        """Undo the changes that a task applied. A file that was changed since is left alone and named."""
        by = f"{PERSON} through {caller_of(call).label}"
        report = await asyncio.to_thread(self.looking.undo, task_id, by)
        left = tuple(f"{one.path}: {self.looking.clean.text(one.reason)}" for one in report.refused)
        return PutBack(task_id=report.task_id, restored=report.restored, left=left)

    @said_plainly
    async def recall(
        self,
        about: Annotated[
            str, Field(description="a tool (`tool:grep`), a pair (`tool:grep path:/tmp`), or words", min_length=1)
        ],
    ) -> Advised:
        """Return the advice of artoo's memory: how much it knows, whether it went well, and its rules."""
        found = await advice_about(self.intake.config, pair_named(about))
        return Advised.of(found, self.looking.clean)

    @said_plainly
    async def audit(self) -> Audited:
        """Return the Auditor's findings since its last report, without ending the period."""
        await self.intake.runner.store_audit()
        return Audited.of(await asyncio.to_thread(self.looking.audit), self.looking.clean)

    def _asked_again(self, call: Call) -> HandedTask | None:
        """If a call is repeated with an answer, pass the answer on to its task and return the task. Returns None if
        the call is not a repeated one."""
        asked = Asked.of(call)
        if asked is None:
            return None
        task = self.intake.find(asked.task_id)
        if task is None:
            raise ToolError(f"task {asked.task_id} is not known any more; ask result for it")
        if task.question is not None and task.question.request.digest == asked.digest:
            task.question.answer(answered(task.question.request, call))
        return task

    async def _attended(
        self, task: HandedTask, call: Call, seconds: float, *, ends_it: bool
    ) -> TaskReport | InputRequiredResult:
        """Wait for a task. If the call is cancelled and `ends_it` is true, the task is interrupted."""
        try:
            question = await attend(task, call, seconds, self.looking.clean)
        except asyncio.CancelledError:
            if ends_it:
                self.intake.interrupt(task)
            raise
        return question or await asyncio.to_thread(self.looking.handed, task)


def _chosen(review: Review, paths: Sequence[str] | None) -> Review:
    """Return the part of a review whose paths are in `paths` or below them. If `paths` is None, return the whole
    review."""
    if paths is None:
        return review
    below = tuple(path.rstrip("/") + "/" for path in paths)
    changes = tuple(one for one in review.changes if one.path in paths or one.path.startswith(below))
    return review.model_copy(update={"changes": changes})


class HomeStatus(Report):
    """The running tasks of this process, and the pending changes and latest tasks of this home."""

    running: tuple[TaskReport, ...] = ()
    waiting: tuple[PendingTask, ...] = ()
    latest: tuple[TaskReport, ...] = ()


class PutBack(Report):
    """The paths that were restored, and the paths that were left unchanged, with the reason."""

    task_id: str
    restored: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Advised(Report):
    """Attention (≥ 0) is how much is known; decision (between -attention and attention) is how well it went."""

    about: str
    attention: float
    decision: float
    action: str = Field(description="what memory advises")
    rules: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Advice, clean: Redactor) -> Advised:
        """Convert memory's advice, without secrets."""
        live = found.potentials
        return cls(
            about=str(live.pair),
            attention=live.attention,
            decision=live.decision,
            action=live.action.value,
            rules=tuple(clean.text(rule.content) for rule in found.rules),
        )


class Audited(Report):
    """The Auditor's findings of one window. If nothing was audited yet, `messages` is 0 and the window is empty."""

    window_start: str = ""
    window_end: str = ""
    messages: int = 0
    tasks: int = 0
    tasks_ended: dict[str, int] = Field(default_factory=dict[str, int])
    violations: tuple[str, ...] = ()
    anomalies: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()

    @classmethod
    def of(cls, report: AuditReport | None, clean: Redactor) -> Audited:
        """Convert a report, without secrets."""
        if report is None:
            return cls()
        return cls(
            window_start=report.window_start.isoformat(),
            window_end=report.window_end.isoformat(),
            messages=report.messages_observed,
            tasks=report.tasks_observed,
            tasks_ended=report.tasks_ended,
            violations=tuple(map(clean.text, report.boundary_violations)),
            anomalies=tuple(map(clean.text, report.anomalies)),
            drift=tuple(map(clean.text, report.drift_alerts)),
            losses=tuple(map(clean.text, report.losses)),
        )
