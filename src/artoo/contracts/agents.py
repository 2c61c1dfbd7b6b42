"""Define the exchange of standing agents: identities, mail, and the board that governs work (SPEC section 11).

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
AgentName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
"""An agent's name is also its folder's: lower case, no dots, no slashes."""

Actor = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_:-]{0,63}$")]
"""Who did something: an agent's name, or one of the three below."""

OPERATOR = "operator"
POLICY = "policy"
RUNTIME = "runtime"
# Begins the name of a foreign agent, as the operator has entered it: no agent of the team has a colon.
FOREIGN = "a2a:"

# No agent's name, but the word that users write for any agent that may do it.
WHOEVER_MAY = "anybody"

RESERVED_NAMES = frozenset({OPERATOR, POLICY, RUNTIME, WHOEVER_MAY})


class TrustLevel(StrEnum):
    """The reach of an agent's own work without a review. Only the operator changes it."""

    PROBATION = "probation"
    STANDARD = "standard"
    TRUSTED = "trusted"
    SENIOR = "senior"


class Complexity(StrEnum):
    """The possible damage of a task that goes wrong.

    Set by the operator or a rule, never by the agent concerned.
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
    """A stored event. `event` names it: an event that is published again after a crash has the same name, so that a
    reader of the stream counts it once."""

    event: str = ""


class BoardTask(Contract):
    """A task on the board as it stands. `complexity` None counts as critical.

    `creator` handed it in. `assignee` None: any agent that may take it. `notes` are reasons that earlier reviews
    gave, oldest first: they reach the agent's context. `run` is the id of the dual loop's task that works, or last
    worked, on it; `summary` its result. `submission` counts how often it was submitted for review. `made_on` is the
    machine that has the files of the latest submission; empty where there is one machine.
    """

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
    """Describe one transition, kept for ever: from which state to which, who did it, why. `before` None: the task
    is new.

    `by_policy`: the approval is the trust policy's, because it demands no review here.
    """

    board_task: str
    before: BoardState | None
    after: BoardState
    actor: Actor
    reason: str = ""
    at: Utc
    by_policy: bool = False


class TaskChanged(Recorded):
    """Describe a change of a task that is no transition, and who made it. `detail` says from what to what.

    `released`: what blocked it is gone, so it may be taken again. `asked`: a foreign agent asked for more.
    `question`: its agent asked the operator something.
    """

    board_task: str
    change: Literal["priority", "complexity", "assignee", "reviewer", "released", "asked", "question"]
    actor: Actor
    detail: str = ""
    at: Utc


class Mail(Contract):
    """Describe one letter. `requires_reply`: the sender waits for the answer, in the application, with a timeout.

    `sender` is an agent or the operator; so is `recipient`.
    """

    id: str
    sender: Actor
    recipient: Actor
    text: str = Field(min_length=1, max_length=100_000)
    priority: Priority = Priority.STANDARD
    requires_reply: bool = False
    in_reply_to: str | None = None
    sent_at: Utc


Partition = Literal["outbox", "inbox", "archive"]


class MailMoved(Recorded):
    """Report that a letter reached a partition: outbox (accepted), inbox (delivered), archive (dealt with)."""

    mail_id: str
    sender: Actor
    recipient: Actor
    priority: Priority
    partition: Partition
    at: Utc
    note: str = ""


class ReplyMissed(Recorded):
    """Report that a reply that was waited for did not come: it took too long, or waiting for it would never have
    ended.

    `cycle` names the agents that waited for one another, if that was why.
    """

    mail_id: str
    waiting: Actor
    recipient: Actor
    why: Literal["timeout", "cycle"]
    cycle: tuple[str, ...] = ()
    at: Utc


class PulseRecorded(Recorded):
    """Describe one beat of an agent's heart, accounted for. `due_at` is when it should have been.

    `run`: there was work; `idle`: looked, nothing to do, no LLM call; `skipped`: not looked, and why (still busy,
    backing off, paused); `missed`: the machine slept or artoo was not running. `count` beats of one kind in a row
    may share a record when they were missed.
    """

    agent: AgentName
    due_at: Utc
    at: Utc
    outcome: Literal["run", "idle", "skipped", "missed"]
    why: str = ""
    count: int = Field(default=1, ge=1)
    llm_calls: int = Field(default=0, ge=0)


class AgentChanged(Recorded):
    """Describe a change of an agent, and who made it. `detail` says from what to what."""

    agent: AgentName
    change: Literal["created", "trust", "paused", "resumed", "stopped", "accepted", "retired"]
    actor: Actor
    detail: str = ""
    at: Utc


class DreamCycleReport(Recorded):
    """Describe one dream cycle of one agent: the new curated knowledge, the retained buffer, the purged entries."""

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
    """Report that an agent looked for work between two beats: mail came, or a critical task, or artoo has started.

    `run`: there was work, at `llm_calls`; `deferred`: left for a later beat, and why (too many wakes, backing off,
    paused). A wake that finds nothing to do leaves no record.
    """

    agent: AgentName
    at: Utc
    cause: str
    outcome: Literal["run", "deferred"]
    why: str = ""
    llm_calls: int = Field(default=0, ge=0)


class ClockJumped(Recorded):
    """Report that the wall clock moved by `seconds` (negative: back) without that much time passing, and what was
    decided.
    """

    agent: AgentName
    seconds: float
    decision: str
    at: Utc


class PatrolRefused(Recorded):
    """Report that an item of a patrol routine cannot be used: file, line, and what to do about it. The others go
    on.
    """

    agent: AgentName
    path: str
    line: int = Field(ge=1)
    problem: str
    at: Utc


class SubmittedWork(Contract):
    """A submission with its evidence, for a reviewer.

    `run` is the dual loop's task, `ending` its directive, `unmet` the criteria that it does not satisfy, `calls`
    one line a tool call, `records` the calls themselves. `digest`: of the files' difference as it was handed in;
    empty when there are none. `guide`: the standing instructions of where the work was done, `seen` what the worker
    was shown of files there before its first call.
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
    """A verdict about a submission. `reasons`: why it is rejected, one each; the next attempt gets them."""

    verdict: Literal["approve", "reject"]
    reasons: tuple[str, ...] = Field(default=(), max_length=5)
