"""Records of standing agents, with trust levels, board states, letters (with their longest text) and priorities.

Reference: SPEC section 11.

pending ─► in_progress ─► review ─► completed ─► archived
   ▲  │        │  ▲          │                      ▲
   │  │        ▼  │          ▼                      │
   │  │      blocked       rejected                 │
   │  ▼        ▼              │                     │
   └─ … ─► cancelled ◄────────┘ ────────────────────┘      failed ─► pending, cancelled
"""

from __future__ import annotations

from datetime import UTC
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field

from artoo.contracts.base import Contract
from artoo.contracts.execution import CriterionVerdict, ToolCall

Utc = Annotated[AwareDatetime, AfterValidator(lambda moment: moment.astimezone(UTC))]
LONGEST_MAIL = 100_000
"""Maximum number of characters of a letter."""

AGENT_NAME = r"[a-z][a-z0-9_-]{0,31}"
ACTOR = r"[a-z][a-z0-9_:-]{0,63}"

AgentName = Annotated[str, Field(pattern=rf"^{AGENT_NAME}$")]
"""An agent's name, which is also its folder's name: lower case, no dots, no slashes."""

Actor = Annotated[str, Field(pattern=rf"^{ACTOR}$")]
"""The author of an operation: an agent's name, or OPERATOR, POLICY or RUNTIME."""

OPERATOR = "operator"
POLICY = "policy"
RUNTIME = "runtime"
# Prefix of the name of a foreign agent, as the operator entered it; names of the team's agents have no colon.
FOREIGN = "a2a:"

# The word that users write for any agent that may do the task; no agent has this name.
WHOEVER_MAY = "anybody"

RESERVED_NAMES = frozenset({OPERATOR, POLICY, RUNTIME, WHOEVER_MAY})


class TrustLevel(StrEnum):
    """The level of trust in an agent, which decides about reviews of its work. Only the operator changes it."""

    PROBATION = "probation"
    STANDARD = "standard"
    TRUSTED = "trusted"
    SENIOR = "senior"


class Complexity(StrEnum):
    """The possible damage of a task that goes wrong.

    The operator or a rule sets it, never the agent concerned.
    """

    SIMPLE = "simple"
    COMPLEX = "complex"
    CRITICAL = "critical"


class Priority(StrEnum):
    """The order of mail and tasks."""

    CRITICAL = "critical"
    STANDARD = "standard"
    BACKGROUND = "background"


class BoardState(StrEnum):
    """The nine states of a governed task."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    REVIEW = "review"
    COMPLETED = "completed"
    FAILED = "failed"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    ARCHIVED = "archived"


class Recorded(Contract):
    """A stored event. `event` is its unique name, which stays the same if the event is published again after a
    crash, so that a reader of the stream counts it once."""

    event: str = ""


class BoardTask(Contract):
    """The present state of a task on the board. `complexity` None counts as critical.

    `creator` created the task. If `assignee` is None, any agent that is allowed to may take it. `notes` are the
    reasons of earlier reviews, oldest first, which are added to the agent's context. `run` is the id of the dual
    loop's task that works, or last worked, on it; `summary` is its result. `submission` counts the submissions
    for review. `made_on` is the machine that has the files of the latest submission; empty if there is one
    machine."""

    id: str
    text: str = Field(min_length=1, max_length=20_000)
    creator: Actor = OPERATOR
    state: BoardState = BoardState.PENDING
    priority: Priority = Priority.STANDARD
    complexity: Complexity | None = None
    assignee: AgentName | None = None
    reviewer: AgentName | None = None
    project: str = ""
    notes: tuple[str, ...] = ()
    run: str | None = None
    summary: str = ""
    submission: int = Field(default=0, ge=0)
    made_on: str = ""
    created_at: Utc
    updated_at: Utc


class TaskMoved(Recorded):
    """A permanent record of one transition: the states before and after, the actor and the reason. `before` is
    None for a new task.

    `by_policy`: the trust policy approved the task, because it demands no review here."""

    board_task: str
    before: BoardState | None
    after: BoardState
    actor: Actor
    reason: str = ""
    at: Utc
    by_policy: bool = False


class TaskChanged(Recorded):
    """A change of a task that is no transition, and its author. `detail` holds the old and the new value.

    `released`: the task is no longer blocked, so it may be taken again. `asked`: a foreign agent asked for more.
    `question`: the task's agent asked the operator something."""

    board_task: str
    change: Literal["priority", "complexity", "assignee", "reviewer", "released", "asked", "question"]
    actor: Actor
    detail: str = ""
    at: Utc


class Mail(Contract):
    """One letter. `requires_reply`: the sender waits for the answer, with a timeout.

    `sender` and `recipient` are agents or the operator."""

    id: str
    sender: Actor
    recipient: Actor
    text: str = Field(min_length=1, max_length=LONGEST_MAIL)
    priority: Priority = Priority.STANDARD
    requires_reply: bool = False
    in_reply_to: str | None = None
    sent_at: Utc


Partition = Literal["outbox", "inbox", "archive"]


class MailMoved(Recorded):
    """A record that a letter moved to a partition: outbox (accepted), inbox (delivered), archive (handled)."""

    mail_id: str
    sender: Actor
    recipient: Actor
    priority: Priority
    partition: Partition
    at: Utc
    note: str = ""


class ReplyMissed(Recorded):
    """A record that an expected reply did not come, because of a timeout or a deadlock.

    `cycle` names the agents that waited for one another, in a deadlock."""

    mail_id: str
    waiting: Actor
    recipient: Actor
    why: Literal["timeout", "cycle"]
    cycle: tuple[str, ...] = ()
    at: Utc


class PulseRecorded(Recorded):
    """A record of one heartbeat of an agent. `due_at` is its scheduled time.

    `run`: the agent found work. `idle`: it found no work and made no LLM call. `skipped`: it did not look for
    work; `why` gives the reason (still busy, backing off, paused). `missed`: the machine slept or artoo was not
    running. Several consecutive missed heartbeats may share one record, which has their `count`."""

    agent: AgentName
    due_at: Utc
    at: Utc
    outcome: Literal["run", "idle", "skipped", "missed"]
    why: str = ""
    count: int = Field(default=1, ge=1)
    llm_calls: int = Field(default=0, ge=0)


class AgentChanged(Recorded):
    """A change of an agent, and its author. `detail` holds the old and the new value."""

    agent: AgentName
    change: Literal["created", "trust", "paused", "resumed", "stopped", "accepted", "retired"]
    actor: Actor
    detail: str = ""
    at: Utc


class DreamCycleReport(Recorded):
    """The report of one agent's dream cycle: its new curated knowledge, its retained buffer, its purged entries."""

    agent: AgentName
    at: Utc
    observations: int = Field(ge=0)
    promoted: tuple[str, ...] = ()
    kept: int = Field(default=0, ge=0)
    purged: int = Field(default=0, ge=0)
    trimmed: tuple[str, ...] = ()
    llm_calls: int = Field(default=0, ge=0)
    error: str | None = None


class AgentWoken(Recorded):
    """A record that an agent looked for work between two heartbeats, because of mail, a critical task or a start.

    `run`: there was work, which cost `llm_calls`. `deferred`: the work waits for a later heartbeat; `why` gives
    the reason (too many wakes, backing off, paused). A wake that finds no work leaves no record."""

    agent: AgentName
    at: Utc
    cause: str
    outcome: Literal["run", "deferred"]
    why: str = ""
    llm_calls: int = Field(default=0, ge=0)


class ClockJumped(Recorded):
    """A record that the wall clock jumped by `seconds` (negative: back), and the decision that followed."""

    agent: AgentName
    seconds: float
    decision: str
    at: Utc


class PatrolRefused(Recorded):
    """A record that an item of a patrol routine is invalid: its file, its line, and how to fix it. The other
    items stay active."""

    agent: AgentName
    path: str
    line: int = Field(ge=1)
    problem: str
    at: Utc


class SubmittedWork(Contract):
    """A submission with its evidence, for a reviewer.

    `run` is the dual loop's task, `ending` its directive, `unmet` its unmet criteria, `calls` one line for each
    tool call, `records` the calls themselves. `digest` identifies the submitted file changes; it is empty if
    there are none. `guide` has the standing instructions of the project, `seen` the file contents that the worker
    was shown before its first call.
    """

    board_task: str
    submission: int = Field(ge=1)
    agent: Actor
    run: str
    request: str
    summary: str
    output: str = ""
    ending: str = ""
    unmet: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()
    verdicts: tuple[CriterionVerdict, ...] = ()
    calls: tuple[str, ...] = ()
    records: tuple[ToolCall, ...] = ()
    digest: str = ""
    guide: str = ""
    seen: str = ""


class ReviewReport(Contract):
    """A verdict on a submission. `reasons` are the reasons of a rejection, which the next attempt receives."""

    verdict: Literal["approve", "reject"]
    reasons: tuple[str, ...] = Field(default=(), max_length=5)
