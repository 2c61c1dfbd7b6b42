"""The Auditor's findings and reports to the operator, with trends of the gap and tool health.

No agent ever receives these messages. Reference: SPEC section 7.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.roles import Role

Nature = Literal["violation", "anomaly", "drift", "loss"]


class Finding(Contract):
    """One problem that the Auditor has found. `rule` is the name of the rule that found it (snake case).

    `violation`: something happened that must never happen. `anomaly`: something unusual happened. `drift`: the
    figures of a role left their long-term range. `loss`: a receiver missed messages."""

    rule: str
    nature: Nature
    what: str
    task_id: str = ""
    subtask_id: str | None = None
    envelope_id: str | None = None
    accountable: Role | None = None
    at: datetime


class GapTrend(Contract):
    """How D changed over the rounds of one task, from the first round in this window to the last."""

    task_id: str
    trend: Literal["improving", "steady", "worsening"]
    distances: tuple[float, ...] = ()


class ToolHealth(Contract):
    """How well the tools work. `execution_failures` counts results with the status `failed`. Retries are counted by
    class."""

    execution_failures: int = Field(default=0, ge=0)
    environmental_retries: int = Field(default=0, ge=0)
    logical_retries: int = Field(default=0, ge=0)
    calls: int = Field(default=0, ge=0)
    failed_calls: int = Field(default=0, ge=0)


class AuditReport(Contract):
    """The events in one window of time. The next window begins with zero. A list contains only the first hundred
    entries of each kind.

    `findings` counts all findings of each nature. `messages_dropped` counts messages that slow subscribers missed,
    and `messages_lost` those that the Auditor itself missed. `forgotten` counts the messages, tasks and findings
    beyond its limits. `correction_trends` counts the corrected subtasks by how their share of unmet criteria
    changed from the first attempt to the last. `accountable` counts failures by the role that is accountable for
    them (paper, Appendix C)."""

    trigger: Literal["periodic", "on-demand"]
    window_start: datetime
    window_end: datetime
    messages_observed: int = Field(default=0, ge=0)
    tasks_observed: int = Field(default=0, ge=0)
    tasks_ended: dict[str, int] = Field(default_factory=dict[str, int])
    total_corrections: int = Field(default=0, ge=0)
    correction_trends: dict[str, int] = Field(default_factory=dict[str, int])
    accountable: dict[str, int] = Field(default_factory=dict[str, int])
    gap_trends: tuple[GapTrend, ...] = ()
    boundary_violations: tuple[str, ...] = ()
    drift_alerts: tuple[str, ...] = ()
    anomalies: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    findings: dict[str, int] = Field(default_factory=dict[str, int])
    tool_health: ToolHealth = Field(default_factory=ToolHealth)
    forgotten: int = Field(default=0, ge=0)
    messages_dropped: int = Field(default=0, ge=0)
    messages_lost: int = Field(default=0, ge=0)
