"""The choice of a web page's language, and the names of roles and states on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from artoo.contracts.agents import BoardState
from artoo.contracts.solution import Directive, FinalResult, StoppedBy
from artoo.words.catalogue import ENGLISH, Catalogue, in_language
from artoo.words.names import ASSURANCE, DECIDERS, DIRECTIVES, ROLES

NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "role": ROLES,
    "directive": DIRECTIVES,
    "decider": DECIDERS,
    "deed": {
        "user": "asks",
        "perceiver": "understands",
        "planner": "plans",
        "dispatcher": "assigns",
        "executor": "executes",
        "agent_validator": "validates",
        "meta_validator": "measures",
        "solver": "decides",
    },
    "task": {
        "working": "working",
        "needs": "needs you",
        "done": "done",
        "failed": "failed",
        "stopped": "stopped",
    },
    "kind": {
        "UserRequest": "request",
        "TaskSpec": "understood",
        "Interrupt": "stop order",
        "Plan": "plan",
        "PlanRefused": "plan refused",
        "CheckAmended": "check replaced",
        "DispatchManifest": "assignments",
        "Joined": "parts joined",
        "OutcomeSummary": "round succeeded",
        "ReplanRequest": "round fell short",
        "PlanDirective": "directive",
        "FinalResult": "result",
        "Halt": "halt",
        "RoleFailure": "role failed",
        "SubTask": "subtask",
        "ExecutionResult": "attempt ended",
        "CorrectionSignal": "correction",
        "SubTaskOutcome": "subtask ended",
        "UserMessage": "your message",
        "QuestionAsked": "question",
        "QuestionAnswered": "answer",
        "PlanProposed": "plan proposed",
        "PlanAnswered": "plan answered",
        "SampleDue": "sample due",
        "Sampled": "sample",
        "SampleMeasured": "sample measured",
        "CourseDirective": "new course",
        "ConfirmationRequest": "approval asked",
        "ConfirmationAnswer": "approval answered",
        "Ending": "ending",
        "Settled": "changes decided",
        "RuleContradicted": "rule contradicted",
        "MemoryRead": "memory read",
        "MemoryWritten": "memory written",
        "TaskOpened": "opened",
        "TaskResumed": "resumed",
        "Observed": "observed",
        "ModelCalled": "model call",
        "ToolStarted": "command started",
        "ToolCalled": "command",
        "NetworkUsed": "network",
        "Compacted": "shortened",
        "ChecklistUpdated": "checklist",
        "EffortChosen": "effort",
        "CriterionJudged": "criterion",
        "Decided": "decision",
        "RouteViolation": "wrong route",
        "MessagesDropped": "messages lost",
        "gap": "missing",
        "unreadable": "unreadable",
    },
    "stage": {"waiting": "to do", "working": "in progress", "checking": "is checked", "matched": "done"},
    "mode": {"new": "new files", "edits": "edits too", "live": "edits, after every turn", "ask": "nothing"},
    "actor": {"operator": "you"},
    "via": {"page": "browser", "terminal": "terminal"},
    "assurance": ASSURANCE,
    "consent": {
        "once": "yes",
        "task": "yes, for this task",
        "no": "no",
        "keep": "kept for later",
        "discard": "discarded",
    },
    "change": {
        "persistence": "start-up, hook or editor file",
        "history": "git history",
        "special": "special file",
        "elsewhere": "outside the project",
        "silent": "new",
    },
    "board": {"in_progress": "in progress"},
    "column": {"needs": "needs you", "todo": "to do", "progress": "in progress", "done": "done"},
    "left": {
        "pending": "no agent can do it: add one, or cancel it",
        "blocked": "release it, or cancel it",
        "review": "its review is left to you",
        "rejected": "rejected too often: approve it, let it be tried again, or cancel it",
        "failed": "let it be tried again, or cancel it",
    },
    "priority": {"critical": "critical", "standard": "standard", "background": "in the background"},
    "trust": {"probation": "on probation", "standard": "standard", "trusted": "trusted", "senior": "senior"},
    "agent": {
        "ready": "ready",
        "paused": "paused",
        "stopped": "stopped",
        "not accepted": "not accepted by you yet",
        "folder gone": "its folder is gone",
        "retired": "retired",
    },
    "level": {"M": "experience", "K": "knowledge", "C": "common sense: rules", "T": "thinking"},
    "ending": {
        "accept": "done",
        "success": "done with gaps",
        "abandon": "given up",
    },
    "trend": {"improving": "got nearer to the goal", "steady": "stayed as it was", "worsening": "got further away"},
    "step": {"done": "done", "in_progress": "in progress", "pending": "to do"},
    "finding": {
        "violation": "Violations of invariants",
        "anomaly": "Anomalies",
        "drift": "Drift of figures",
        "loss": "Lost messages",
    },
    "chain": {"closed": "in order", "running": "is being written", "died": "its process died"},
    "anchor": {
        "opened": "started",
        "head": "anchored",
        "closed": "closed in order",
        "died": "its process died",
        "retired": "removed because of its age",
    },
    "advice": {
        "exploit": "It has worked, so artoo prefers it.",
        "avoid": "It has failed, so artoo avoids it.",
        "caution": "It has worked and failed, so artoo is careful with it.",
        "ignore": "There is too little experience for advice.",
    },
    "pulse": {"run": "worked", "idle": "nothing to do", "skipped": "skipped", "missed": "missed"},
}
"""The names by kind. A name that is missing here is shown unchanged."""


def named(kind: str, name: str) -> str:
    """Return the English name that the page shows, which is also the key for its translation."""
    return NAMES[kind].get(name, name)


def state_of(result: FinalResult | None, *, running: bool, asked: bool) -> str:
    """Return the state of a task as its user sees it. `asked`: something waits for the user."""
    if asked or (result is not None and result.stopped_by is StoppedBy.QUESTION):
        return "needs"
    if result is None:
        return "working" if running else "stopped"
    if result.stopped_by is StoppedBy.INTERRUPTED:
        return "stopped"
    return "failed" if result.directive is Directive.ABANDON else "done"


def why_left(why: str, state: BoardState, words: Catalogue) -> str:
    """Return the reason why a task of the board needs the operator, or that of its state without a translation."""
    said = words(why)
    return said if said != why or words.language == "en" else words(named("left", state.value))


def chosen_language(cookie: str, accepted: str) -> Catalogue:
    """Return the language that the user chose, or else the first accepted language that artoo has."""
    if cookie in ("en", "zh"):
        return in_language(cookie)
    for part in accepted.split(","):
        tag = part.partition(";")[0].strip().lower()
        if tag.startswith(("zh", "en")):
            return in_language(tag)
    return ENGLISH
