"""Answers of tools that only MCP has: what stands, what was put back, what memory and Auditor say."""

from __future__ import annotations

from pydantic import Field

from artoo.contracts.audit import AuditReport
from artoo.protocols.reports import Report, TaskReport, Waiting
from artoo.redaction import Redactor
from artoo.runtime.memory.books import Advice


class Standing(Report):
    """What runs in this process, what waits for a yes below this home, and the latest tasks of it."""

    running: tuple[TaskReport, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    latest: tuple[TaskReport, ...] = ()


class PutBack(Report):
    """Paths that are as before the task, and those that were left alone, each with why."""

    task_id: str
    restored: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Advised(Report):
    """Attention ≥ 0 says how much is known, decision (between -attention and attention) how well it went."""

    about: str
    attention: float
    decision: float
    action: str = Field(description="what memory advises")
    rules: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Advice, clean: Redactor) -> Advised:
        """Memory's own words, without secrets."""
        live = found.potentials
        return cls(
            about=str(live.pair),
            attention=live.attention,
            decision=live.decision,
            action=live.action.value,
            rules=tuple(clean.text(rule.content) for rule in found.rules),
        )


class Audited(Report):
    """The Auditor's findings of one window. `messages` 0 and no window: nothing was audited yet."""

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
        """In short, without secrets."""
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
