"""The settings below `runtime:` for agents, with heartbeat, memory tiers, dream cycle, mail timeout and trust.

Reference: SPEC section 11.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar, get_args

from pydantic import AfterValidator, Field, field_validator

from artoo.agents.heartbeat.backoff import LONGEST_INTERVAL, SHORTEST_INTERVAL, USUAL_INTERVAL
from artoo.settings.expanded import HomePathText
from artoo.settings.sections import Section, Whole

State = Literal[
    "pending",
    "in_progress",
    "blocked",
    "review",
    "completed",
    "failed",
    "rejected",
    "cancelled",
    "archived",
]
Partition = Literal["outbox", "inbox", "archive"]
Priority = Literal["critical", "standard", "background"]


_Names = TypeVar("_Names", bound=tuple[str, ...])


def _exactly(names: tuple[str, ...], what: str) -> AfterValidator:
    """Return a validator which requires that a setting contains each of `names` exactly once, in any order."""

    def check(given: _Names) -> _Names:
        if sorted(names) != sorted(given):
            raise ValueError(f"must name exactly these {what}: {', '.join(names)}")
        return given

    return AfterValidator(check)


class ProceduralMemory(Section):
    """The settings of the identity files of the T level. `path` is relative to the home."""

    path: str = "./config/agent_identity.yaml"
    immutable: Literal[True] = True


class SemanticMemory(Section):
    """The limits of curated knowledge (its characters), and of dream cycles (the observations before one and the
    hours between two)."""

    max_curated_chars: Whole = Field(default=15_000, ge=1_000, le=1_000_000)
    observation_buffer_limit: Whole = Field(default=50, ge=11, le=10_000)
    dream_cycle_interval_hours: Whole = Field(default=24, ge=1, le=24 * 30)


class EpisodicMemory(Section):
    """The settings of the activity database, which are the days for which sessions are kept and its path (relative
    to the home)."""

    session_retention_days: Whole = Field(default=90, ge=1, le=3_650)
    activity_db: str = Field(default="sqlite://./data/agent_activities.db", pattern=r"^sqlite://.+")


class AgentMemory(Section):
    """The settings of the three memory tiers of an agent."""

    procedural: ProceduralMemory = Field(default_factory=ProceduralMemory.model_construct)
    semantic: SemanticMemory = Field(default_factory=SemanticMemory.model_construct)
    episodic: EpisodicMemory = Field(default_factory=EpisodicMemory.model_construct)


class A2AProtocol(Section):
    """The settings of mail between agents. A sender does not wait for a reply unless it says so.

    `standins`: agents that are asked instead if an agent does not answer within the timeout.
    """

    default_mode: Literal["async"] = "async"
    sync_timeout_seconds: Whole = Field(default=30, ge=1, le=3_600)
    standins: tuple[str, ...] = ()
    mailbox_partitions: Annotated[tuple[Partition, ...], _exactly(get_args(Partition), "partitions")] = get_args(
        Partition
    )


class AttentionController(Section):
    """The priorities of an agent's work, highest first."""

    priority_levels: tuple[Priority, ...] = get_args(Priority)

    @field_validator("priority_levels")
    @classmethod
    def _levels(cls, given: tuple[Priority, ...]) -> tuple[Priority, ...]:
        if given != get_args(Priority):
            raise ValueError(f"must be, in this order: {', '.join(get_args(Priority))}")
        return given


class Communication(Section):
    """The settings of mail and of attention."""

    a2a_protocol: A2AProtocol = Field(default_factory=A2AProtocol.model_construct)
    attention_controller: AttentionController = Field(default_factory=AttentionController.model_construct)


class StateMachine(Section):
    """The nine states of a task on the board."""

    states: Annotated[tuple[State, ...], _exactly(get_args(State), "states")] = get_args(State)


class Trust(Section):
    """Decides whose submissions are reviewed, and whether an agent may approve the submissions of others."""

    review_threshold: Literal["all", "complex", "critical", "none"]
    can_approve: bool = False


class TrustLevels(Section):
    """The levels of trust, from a new agent to one whose own work needs no review."""

    probation: Trust = Field(default_factory=lambda: Trust.model_construct(review_threshold="all"))
    standard: Trust = Field(default_factory=lambda: Trust.model_construct(review_threshold="complex"))
    trusted: Trust = Field(default_factory=lambda: Trust.model_construct(review_threshold="critical"))
    senior: Trust = Field(default_factory=lambda: Trust.model_construct(review_threshold="none", can_approve=True))


class ComplexityRule(Section):
    """A rule that determines the complexity of a task if the operator has not set it. The first matching rule
    decides.

    A rule matches if all of its conditions hold. `project` is the task's directory or one above it, `assignee` the
    agent, `creator` the operator or an agent, and `priority` the task's priority.
    """

    complexity: Literal["simple", "complex", "critical"]
    project: HomePathText | None = None
    assignee: str | None = None
    creator: Literal["operator", "agent"] | None = None
    priority: Priority | None = None


class Governance(Section):
    """The settings of the state machine, and of the rules for reviews."""

    complexity_rules: tuple[ComplexityRule, ...] = ()

    fsm: StateMachine = Field(default_factory=StateMachine.model_construct)
    trust_levels: TrustLevels = Field(default_factory=TrustLevels.model_construct)


class Heartbeat(Section):
    """The settings of the heartbeat of a standing agent. `patrol_routine` is the path, relative to the home, of a
    HEARTBEAT.md or of a script that prints what is to be done. Every agent follows it in addition to its own
    routine.
    """

    interval_seconds: Whole = USUAL_INTERVAL
    mailbox_check: bool = True
    task_scan: bool = True
    patrol_routine: str = "./config/heartbeat_patrol.md"

    @field_validator("interval_seconds")
    @classmethod
    def _interval(cls, given: int) -> int:
        if not SHORTEST_INTERVAL <= given <= LONGEST_INTERVAL:
            raise ValueError(
                f"must be from {SHORTEST_INTERVAL} to {LONGEST_INTERVAL} seconds:"
                " shorter pulses storm the model, longer ones leave mail lying"
            )
        return given


class Autonomy(Section):
    """The settings of the work that agents do by themselves."""

    heartbeat: Heartbeat = Field(default_factory=Heartbeat.model_construct)


class AgentRuntime(Section):
    """The whole tree of settings, in the form of the template from the seed document."""

    memory: AgentMemory = Field(default_factory=AgentMemory.model_construct)
    communication: Communication = Field(default_factory=Communication.model_construct)
    governance: Governance = Field(default_factory=Governance.model_construct)
    autonomy: Autonomy = Field(default_factory=Autonomy.model_construct)
