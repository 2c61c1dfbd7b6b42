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
"""The name of an agent, which is also the name of its folder. It is in lower case, without dots and slashes."""

Actor = Annotated[str, Field(pattern=rf"^{ACTOR}$")]
"""Who does an operation. It is the name of an agent, or OPERATOR, POLICY or RUNTIME."""

OPERATOR = "operator"
POLICY = "policy"
RUNTIME = "runtime"
# Prefix of the name of a foreign agent. The operator chose the part after it. The names of the team's agents
# contain no colon.
FOREIGN = "a2a:"

# The word with which users say that any agent may do a task. No agent has this name.
WHOEVER_MAY = "anybody"

RESERVED_NAMES = frozenset({OPERATOR, POLICY, RUNTIME, WHOEVER_MAY})


class TrustLevel(StrEnum):
    """The level of trust in an agent, by which it is decided whether its work is reviewed. Only the operator
    changes it."""

    PROBATION = "probation"
    STANDARD = "standard"
    TRUSTED = "trusted"
    SENIOR = "senior"


class Complexity(StrEnum):
    """How much damage a task may cause if it goes wrong.

    The operator or a rule sets it, never the agent concerned.
    """

    SIMPLE = "simple"
    COMPLEX = "complex"
    CRITICAL = "critical"


class Priority(StrEnum):
    """The order in which mail and tasks are handled."""

    CRITICAL = "critical"
    STANDARD = "standard"
    BACKGROUND = "background"


class BoardState(StrEnum):
    """The nine states of a task on the board."""

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
    """An event that is stored in the database. `event` is its unique name. If the event is published again after a
    crash, the name stays the same, so that a reader of the stream counts it once."""

    event: str = ""


class BoardTask(Contract):
    """The present state of a task on the board. If `complexity` is None, the task counts as critical.

    `creator` added the task to the board. If `assignee` is None, any agent that may do the task can take it.
    `notes` are the reasons of earlier reviews, oldest first. They are added to the context of the agent. `run` is
    the id of the dual loop's task that works on it, or was the last to do so. `summary` is the result of that task.
    `submission` is the number of submissions for review so far. `made_on` is the machine that has the files of the
    latest submission. It is empty if there is only one machine."""

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
    """A permanent record of one move of a task. It has the states before and after, the actor and the reason.
    `before` is None for a new task.

    `by_policy`: true if the trust policy approved the task because it requires no review."""

    board_task: str
    before: BoardState | None
    after: BoardState
    actor: Actor
    reason: str = ""
    at: Utc
    by_policy: bool = False


class TaskChanged(Recorded):
    """A change of a task that is no move between states, and who made it. `detail` contains the old and the new
    value.

    `released`: the task is no longer blocked, so that it may be taken again. `asked`: a foreign agent sent another
    message. `question`: the agent that works on the task asked the operator a question."""

    board_task: str
    change: Literal["priority", "complexity", "assignee", "reviewer", "released", "asked", "question"]
    actor: Actor
    detail: str = ""
    at: Utc


class Mail(Contract):
    """One letter. `requires_reply`: true if the sender waits for the answer, up to a timeout.

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
    """A record that a letter moved to another partition: outbox (accepted), inbox (delivered) or archive
    (handled)."""

    mail_id: str
    sender: Actor
    recipient: Actor
    priority: Priority
    partition: Partition
    at: Utc
    note: str = ""


class ReplyMissed(Recorded):
    """A record that a reply did not come, because of a timeout or a deadlock.

    In a deadlock, `cycle` names the agents that waited for one another."""

    mail_id: str
    waiting: Actor
    recipient: Actor
    why: Literal["timeout", "cycle"]
    cycle: tuple[str, ...] = ()
    at: Utc


class PulseRecorded(Recorded):
    """A record of one beat of an agent. `due_at` is the time at which it was scheduled.

    `run`: the agent found work. `idle`: it found no work, and made no model call. `skipped`: it did not look for
    work, and `why` contains the reason (still busy, backing off, paused). `missed`: the machine was asleep, or
    artoo was not running. Missed beats in a row may share one record, which contains their `count`."""

    agent: AgentName
    due_at: Utc
    at: Utc
    outcome: Literal["run", "idle", "skipped", "missed"]
    why: str = ""
    count: int = Field(default=1, ge=1)
    llm_calls: int = Field(default=0, ge=0)


class AgentChanged(Recorded):
    """A change of an agent, and who made it. `detail` contains the old and the new value."""

    agent: AgentName
    change: Literal["created", "trust", "paused", "resumed", "stopped", "accepted", "retired"]
    actor: Actor
    detail: str = ""
    at: Utc


class DreamCycleReport(Recorded):
    """The report of one dream cycle of an agent. It has the new curated knowledge, what is left in the buffer, and
    what was deleted."""

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
    """A record that an agent looked for work between two beats, because of mail, a critical task, or its start.

    `run`: there was work, for which `llm_calls` were made. `deferred`: the work is left to a later beat, and `why`
    contains the reason (too many wakes, backing off, paused). A wake without work leaves no record."""

    agent: AgentName
    at: Utc
    cause: str
    outcome: Literal["run", "deferred"]
    why: str = ""
    llm_calls: int = Field(default=0, ge=0)


class ClockJumped(Recorded):
    """A record that the wall clock jumped by `seconds` (negative if it went back), and what was decided about
    it."""

    agent: AgentName
    seconds: float
    decision: str
    at: Utc


class PatrolRefused(Recorded):
    """A record that an item of a patrol routine is invalid. It has the file, the line, and how to fix the item. The
    other items are still used."""

    agent: AgentName
    path: str
    line: int = Field(ge=1)
    problem: str
    at: Utc


class SubmittedWork(Contract):
    """A submission with its evidence, which a reviewer reads.

    `run` is the dual loop's task, and `ending` the directive with which it ended. `unmet` are its unmet criteria.
    `calls` has one line for each tool call, and `records` are the calls themselves. `digest` identifies the
    submitted changes of files. It is empty if there are none. `guide` contains the standing instructions of the
    project. `seen` contains the parts of files that the worker was shown before its first call.
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
    """A verdict on a submission. `reasons` are the reasons why it was rejected. The next attempt receives them."""

    verdict: Literal["approve", "reject"]
    reasons: tuple[str, ...] = Field(default=(), max_length=5)
