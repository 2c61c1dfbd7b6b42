"""The table of routes, that is, each message kind with its senders, receivers and possible causes.

Reference: SPEC section 1.

The table consists of data. The bus enforces it, inboxes are filled by it, and the Auditor checks causality with it.
A kind that is not in the table cannot be published.
"""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.roles import Role

R = Role


@dataclass(frozen=True, slots=True)
class Route:
    """The senders that may publish a kind, the roles whose inboxes receive it, and the kinds that it may answer.

    If `causes` is empty, the kind answers no message. If `causes` is None, the kind may answer any message, as
    records do.
    """

    senders: frozenset[Role]
    receivers: frozenset[Role] = frozenset()
    causes: frozenset[str] | None = None


def _route(senders: set[Role], receivers: set[Role], causes: set[str] | None) -> Route:
    return Route(frozenset(senders), frozenset(receivers), None if causes is None else frozenset(causes))


_LLM_ROLES = {
    *{R.PERCEIVER, R.PLANNER, R.EXECUTOR, R.AGENT_VALIDATOR, R.META_VALIDATOR, R.SOLVER},
    *{R.DREAMER, R.REVIEWER},
}
_WORKERS = {R.PERCEIVER, R.PLANNER, R.DISPATCHER, R.EXECUTOR, R.AGENT_VALIDATOR, R.META_VALIDATOR, R.SOLVER}
_ENDINGS = {
    "OutcomeSummary",
    "ReplanRequest",
    "PlanRefused",
    "RoleFailure",
    "Interrupt",
    "UserRequest",
    "Halt",
}

ROUTES: dict[str, Route] = {
    # the request
    "UserRequest": _route({R.USER}, {R.PERCEIVER, R.SOLVER}, set()),
    "TaskSpec": _route({R.PERCEIVER}, {R.PLANNER, R.META_VALIDATOR, R.SOLVER}, {"UserRequest"}),
    "Interrupt": _route({R.USER}, {R.SOLVER}, set()),
    # the medium loop
    "Plan": _route({R.PLANNER}, {R.DISPATCHER, R.SOLVER}, {"TaskSpec", "PlanDirective", "PlanAnswered"}),
    "PlanRefused": _route({R.PLANNER}, {R.SOLVER}, {"TaskSpec", "PlanDirective", "PlanAnswered"}),
    "CheckAmended": _route({R.PLANNER}, {R.META_VALIDATOR, R.SOLVER}, {"PlanDirective", "PlanAnswered"}),
    "DispatchManifest": _route({R.DISPATCHER}, {R.META_VALIDATOR}, {"Plan"}),
    "Joined": _route({R.DISPATCHER}, {R.META_VALIDATOR}, {"SubTaskOutcome"}),
    "OutcomeSummary": _route({R.META_VALIDATOR}, {R.SOLVER}, {"Joined", "DispatchManifest"}),
    "ReplanRequest": _route({R.META_VALIDATOR}, {R.SOLVER}, {"Joined", "DispatchManifest", "Halt"}),
    "PlanDirective": _route({R.SOLVER}, {R.PLANNER}, {"ReplanRequest", "PlanRefused"}),
    "FinalResult": _route({R.SOLVER}, {R.USER}, _ENDINGS),
    "Halt": _route(
        {R.SOLVER},
        {R.META_VALIDATOR},
        {"UserRequest", "TaskSpec", "RoleFailure", "Interrupt"},
    ),
    "RoleFailure": _route(_WORKERS, {R.SOLVER}, None),
    # the fast loop
    "SubTask": _route({R.DISPATCHER}, {R.EXECUTOR, R.AGENT_VALIDATOR}, {"Plan", "SubTaskOutcome"}),
    "ExecutionResult": _route({R.EXECUTOR}, {R.AGENT_VALIDATOR, R.META_VALIDATOR}, {"SubTask", "CorrectionSignal"}),
    "CorrectionSignal": _route({R.AGENT_VALIDATOR}, {R.EXECUTOR}, {"ExecutionResult"}),
    "SubTaskOutcome": _route({R.AGENT_VALIDATOR}, {R.DISPATCHER, R.META_VALIDATOR}, {"ExecutionResult"}),
    # a running task: messages of the user, questions to the user, samples of a running attempt (SPEC section 3.5)
    "UserMessage": _route({R.USER}, {R.EXECUTOR, R.PLANNER, R.DISPATCHER, R.SOLVER}, set()),
    "QuestionAsked": _route({R.EXECUTOR}, {R.USER, R.SOLVER}, {"SubTask", "CorrectionSignal"}),
    "QuestionAnswered": _route({R.USER}, {R.EXECUTOR, R.SOLVER}, {"QuestionAsked"}),
    "PlanProposed": _route({R.PLANNER}, {R.USER, R.SOLVER}, {"TaskSpec", "PlanDirective", "PlanAnswered"}),
    "PlanAnswered": _route({R.USER}, {R.PLANNER, R.SOLVER}, {"PlanProposed"}),
    "SampleDue": _route({R.EXECUTOR}, {R.AGENT_VALIDATOR}, {"SubTask", "CorrectionSignal"}),
    "Sampled": _route({R.AGENT_VALIDATOR}, {R.SOLVER}, {"SampleDue"}),
    "CourseDirective": _route({R.SOLVER}, {R.EXECUTOR}, {"Sampled"}),
    # Law 1
    "ConfirmationRequest": _route({R.GATE}, {R.USER, R.SOLVER}, None),
    "ConfirmationAnswer": _route({R.USER}, {R.GATE, R.SOLVER}, {"ConfirmationRequest"}),
    # the end of a task's workspace
    "Ending": _route({R.SOLVER}, {R.GATE}, _ENDINGS),
    "Settled": _route({R.GATE}, {R.SOLVER}, {"Ending"}),
    # memory
    "RuleContradicted": _route({R.PLANNER}, {R.SOLVER}, {"TaskSpec", "PlanDirective"}),
    "MemoryRead": _route({R.PLANNER, R.SOLVER}, set(), None),
    "MemoryWritten": _route({R.SOLVER, R.DREAMER}, set(), None),
    "DreamReport": _route({R.DREAMER}, set(), None),
    "TLayerProposal": _route({R.DREAMER}, set(), None),
    # standing agents: records, for the Auditor and watchers
    "TaskMoved": _route({R.BOARD}, set(), None),
    "TaskChanged": _route({R.BOARD}, set(), None),
    "Mail": _route({R.MAILBOX}, set(), None),
    "MailMoved": _route({R.MAILBOX}, set(), None),
    "ReplyMissed": _route({R.MAILBOX}, set(), None),
    "PulseRecorded": _route({R.HEARTBEAT}, set(), None),
    "AgentChanged": _route({R.BOARD}, set(), None),
    "DreamCycleReport": _route({R.HEARTBEAT}, set(), None),
    "AgentWoken": _route({R.HEARTBEAT}, set(), None),
    "ClockJumped": _route({R.HEARTBEAT}, set(), None),
    "PatrolRefused": _route({R.HEARTBEAT}, set(), None),
    # records
    "TaskOpened": _route({R.USER}, set(), set()),
    "TaskResumed": _route({R.USER}, set(), set()),
    "Observed": _route(_WORKERS - {R.PERCEIVER} | {R.USER}, set(), None),
    "ModelCalled": _route(_LLM_ROLES, set(), None),
    "ToolStarted": _route({R.EXECUTOR}, set(), None),
    "ToolCalled": _route({R.EXECUTOR}, set(), None),
    "NetworkUsed": _route({R.GATE}, set(), None),
    "Compacted": _route({R.EXECUTOR}, set(), None),
    "ChecklistUpdated": _route({R.EXECUTOR}, set(), None),
    "TextDelta": _route({R.PLANNER, R.EXECUTOR, R.META_VALIDATOR}, set(), None),
    "SampleMeasured": _route({R.SOLVER}, set(), None),
    "EffortChosen": _route({R.SOLVER}, set(), None),
    "CriterionJudged": _route({R.AGENT_VALIDATOR, R.META_VALIDATOR}, set(), None),
    "Decided": _route({R.SOLVER}, set(), None),
    "RouteViolation": _route({R.BUS}, set(), None),
    "MessagesDropped": _route({R.BUS}, set(), None),
}


# Kinds that are only displayed, and never logged.
TRANSIENT = frozenset({"TextDelta"})


def may_publish(sender: Role, kind: str) -> bool:
    """Return whether the table allows `sender` to publish `kind`."""
    route = ROUTES.get(kind)
    return route is not None and sender in route.senders


def may_follow(kind: str, cause_kind: str | None) -> bool:
    """Return whether `kind` may answer a message of `cause_kind`. None means that it answers no message."""
    route = ROUTES.get(kind)
    if route is None:
        return False
    if route.causes is None:
        return True
    return cause_kind in route.causes if cause_kind is not None else not route.causes
