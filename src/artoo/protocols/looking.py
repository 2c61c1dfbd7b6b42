"""Read pending changes, ended tasks, logs and audit reports of a home for protocol clients."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from artoo.auditor.reading import report_so_far
from artoo.contracts import codec
from artoo.contracts.audit import AuditReport
from artoo.contracts.changes import UndoReport
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.solution import FinalResult
from artoo.protocols.handed import HandedTask
from artoo.protocols.reports import (
    DifferenceReport,
    PendingTask,
    TaskReport,
    difference_report,
    result_report,
    running_report,
    waiting_report,
)
from artoo.redaction import Redactor, secret_values
from artoo.runtime.app.system import SystemClock
from artoo.runtime.changes.find_pending import find_pending, pendings
from artoo.runtime.changes.pending_changes import Pending
from artoo.runtime.changes.settlement_history import SettledBooks
from artoo.runtime.changes.startup_recovery import recover_earlier
from artoo.runtime.changes.undo import can_be_undone, put_back, undoable_task, undone_already
from artoo.runtime.config.endpoints import key_variables
from artoo.runtime.config.model import Config
from artoo.tasklog.reader import TaskSummary, find_log, list_tasks, summary_of

LONGEST_TEXT = 4 << 20
"""Maximum number of characters of a log or a difference in an answer. If more is left out, a last line says so."""
MOST_WAITING = 100


@dataclass(frozen=True, slots=True)
class Looking:
    """Answers queries about one home. Methods that are not async block. `clean` redacts secrets in the answers."""

    config: Config
    clean: Redactor

    def waiting(self) -> tuple[PendingTask, ...]:
        """List pending changes, latest first. Raises SandboxError."""
        recover_earlier(self.config)
        found = sorted(pendings(self.config), key=lambda one: one.since, reverse=True)
        return tuple(waiting_report(one, self.clean) for one in found[:MOST_WAITING])

    def pending(self, task_id: str) -> Pending:
        """Find the pending changes of one task. Raises ConfigurationError, SandboxError."""
        recover_earlier(self.config)
        return find_pending(self.config, id_of(task_id))

    async def difference(self, pending: Pending) -> DifferenceReport:
        """Report all pending changes of a task. Raises SandboxError."""
        digest = await pending.digest()
        return difference_report(await pending.diff(), digest, self.clean)

    async def whole_difference(self, pending: Pending) -> str:
        """Return all pending changes of a task as text, with every diff. Raises SandboxError."""
        review = await pending.diff()
        lines: list[str] = []
        for one in review.changes:
            lines += [f"{one.change_class.value} {one.kind.value} {one.path} {one.detail}".rstrip(), *one.diff]
        lines += [f"conflict {one.path}: {one.reason}" for one in review.conflicts]
        return _bounded(self.clean.text("\n".join(lines)))

    def undo(self, task_id: str, by: str) -> UndoReport:
        """Undo a task. If it was undone before, report that again. Raises ConfigurationError, SandboxError."""
        known = can_be_undone(self.config)
        already = undone_already(self.config, known, id_of(task_id))
        if already is not None:
            return UndoReport(task_id=already.task_id, restored=already.paths)
        return put_back(self.config, undoable_task(known, id_of(task_id)), by=by)

    def ended(self, task_id: str) -> TaskReport:
        """Report a task of another process, or of an earlier one, from its log. Raises ConfigurationError."""
        whole = find_log(self.config.home, id_of(task_id)).task_id()
        summary = summary_of(self.config.home, whole)
        if summary is None:
            raise ConfigurationError(f"the log of task {whole} cannot be read; artoo log show {whole} says why")
        return self._summed(summary, SettledBooks.of(self.config.home))

    def handed(self, task: HandedTask) -> TaskReport:
        """Report a task of this process."""
        if task.result is None:
            return running_report(task, self.clean)
        return self._told(task.result, task.request, SettledBooks.of(self.config.home))

    def latest(self, most: int, running: Iterable[HandedTask]) -> tuple[TaskReport, ...]:
        """Return reports of at most `most` tasks of this home, latest first. `running`: the running tasks of this
        process."""
        books = SettledBooks.of(self.config.home)
        own = {one.task_id: one for one in running}
        return tuple(
            self.handed(own[one.task_id]) if one.task_id in own else self._summed(one, books)
            for one in list_tasks(self.config.home, most)
        )

    def log(self, task_id: str) -> str:
        """Return a task's log as JSON lines. Raises ConfigurationError, MessageUnreadable."""
        lines: list[bytes] = []
        size = 0
        for _, fields in find_log(self.config.home, id_of(task_id)).fields():
            lines.append(codec.line_of(fields))
            size += len(lines[-1]) + 1
            if size > LONGEST_TEXT:
                break
        return _bounded(b"\n".join(self.clean.lines(lines)).decode("utf-8", "replace"))

    def audit(self) -> AuditReport | None:
        """Return the Auditor's report about the time so far (None if there are no data). Its period continues.
        Raises OSError."""
        return report_so_far(self.config.home, SystemClock().now())

    def _summed(self, summary: TaskSummary, books: SettledBooks) -> TaskReport:
        if summary.result is not None:
            return self._told(summary.result, summary.request, books)
        # A task without a result runs in another process, or was interrupted.
        status = "elsewhere" if summary.running else "stopped"
        request = self.clean.text(summary.request)
        return TaskReport(task_id=summary.task_id, status=status, request=request, resumable=not summary.running)

    def _told(self, result: FinalResult, request: str, books: SettledBooks) -> TaskReport:
        after = books.afterwards(result.task_id, result.changes)
        return result_report(result, request, after, self.clean)


def looking_at(config: Config) -> Looking:
    """Build the object that answers queries for the home of a configuration. Secrets that this process knows are
    redacted."""
    return Looking(config, Redactor(secret_values(os.environ, key_variables(config))))


def id_of(task_id: str) -> str:
    """Raise ConfigurationError unless a text is the id of a task or the beginning of one. Return the text."""
    wanted = task_id.strip()
    if not wanted or not all(character.isalnum() or character == "-" for character in wanted):
        raise ConfigurationError(f"{task_id[:80]!r} is no task id; status lists tasks")
    return wanted


def _bounded(text: str) -> str:
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}\n[cut here: longer than {LONGEST_TEXT:,} characters; use the command line]\n"
