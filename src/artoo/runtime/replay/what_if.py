"""Recompute logged decisions with other hyperparameters, and parse changes such as `delta=.2`.

Only decisions are recomputed. After the first decision that differs, the task would have gone on differently, and
the log has no data about that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.plan import Plan, PlanRefused
from artoo.contracts.recording import TaskOpened
from artoo.contracts.request import TaskSpec, UserRequest
from artoo.contracts.solution import Decided, Directive, OutcomeSummary, ReplanRequest, StoppedBy
from artoo.contracts.steering import EffortChosen
from artoo.control.decision import Decision, Evidence, MacroState
from artoo.control.hyperparameters import Hyperparameters
from artoo.loops.medium.endings import open_criteria
from artoo.loops.medium.trajectory import WRONG_APPROACH, Gap, Measurement, Trajectory, delivered, measure
from artoo.runtime.replay.recording import Recording
from artoo.runtime.task.task_header import settings_of

NAMES = {
    "δ": "delta",
    "ε": "epsilon",
    "α": "alpha",
    "β": "beta",
    "λ": "lambda_",
    "lambda": "lambda_",
    "ρ": "rho",
    "θ": "theta",
    "w₁": "w1",
    "w₂": "w2",
}
_UNUSED = ("max_retries", "exhausted_after")
"""Hyperparameters whose effect cannot be recomputed. Retries belong to the fast loop, and a log does not record
when no other approach was left."""

_KINDS: dict[str, Callable[[str], float | int | str]] = {"float": float, "int": int}
"""The functions that convert a text to the value of a field, by the annotated type of the field. Values of other
types remain texts."""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The decision of one round, as recorded (`then`) and as recomputed (`now`). `now` is None if it cannot be
    known."""

    then: Decided
    now: Decided | None
    note: str = ""

    @property
    def same(self) -> bool:
        """Return whether the task would have continued in the same way."""
        return self.now is not None and self.now.directive is self.then.directive


def changed(h: Hyperparameters, lines: Sequence[str]) -> Hyperparameters:
    """Return `h` with changes such as `δ=.2` or `delta=.2,epsilon=.05`. Raises ConfigurationError that names the
    mistake."""
    known = {field.name: _KINDS.get(str(field.type), str) for field in fields(h) if field.name not in _UNUSED}
    values: dict[str, Any] = {}
    for part in (part.strip() for line in lines for part in line.split(",")):
        given, _, value = (piece.strip() for piece in part.partition("="))
        name = NAMES.get(given, given)
        if name not in known or not value:
            names = ", ".join(each.rstrip("_") for each in known)
            raise ConfigurationError(f"--with {part!r}: write NAME=VALUE with one of: {names} (or δ, ε, …)")
        try:
            values[name] = known[name](value)
        except ValueError as error:
            kind = "a whole number" if known[name] is int else "a number"
            raise ConfigurationError(f"--with {part!r}: {value!r} is not {kind}") from error
    if values.get("gradient", "paper") not in ("paper", "equal_cost"):
        raise ConfigurationError("--with gradient: write gradient=paper or gradient=equal_cost")
    try:
        return replace(h, **values)
    except ValueError as error:
        raise ConfigurationError(f"--with: {error}") from error


def law_of(recording: Recording) -> Hyperparameters:
    """Return the hyperparameters that the task used. These are the ones for its type if it has such, otherwise the
    general ones.

    Raises ConfigurationError.
    """
    settings = settings_of(recording.opened)
    spec = next((each.payload for each in recording.stream if isinstance(each.payload, TaskSpec)), None)
    return settings.hyperparameters if spec is None else settings.tuned.get(spec.task_id, settings.hyperparameters)


def what_if(stream: Sequence[Envelope], h: Hyperparameters) -> list[Recomputed]:
    """Return the recorded decisions together with those that `h` would give, up to and including the first that
    differs."""
    by_id = {envelope.id: envelope for envelope in stream}
    trajectory, budget = Trajectory(h), min(float(h.time_budget_ms), deadline_ms(stream))
    opened = next((each.payload for each in stream if isinstance(each.payload, TaskOpened)), None)
    by_effort = opened is not None and opened.hyperparameters.get("time_budget_ms") == h.time_budget_ms
    rounds: list[Recomputed] = []
    for envelope in stream:
        match envelope.payload:
            case EffortChosen(seconds=seconds) if by_effort:
                budget = seconds * 1_000
            case Decided() as decided:
                rounds.append(_recomputed(decided, by_id.get(envelope.cause_id or ""), trajectory, budget))
                if not rounds[-1].same:
                    break
            case _:
                continue
    return rounds


def _recomputed(then: Decided, cause: Envelope | None, trajectory: Trajectory, budget_ms: float) -> Recomputed:
    payload = cause.payload if cause is not None else None
    elapsed = then.elapsed_ms or 0.0
    stopped = payload.stopped_by if isinstance(payload, ReplanRequest) else None
    if stopped is StoppedBy.TIME or isinstance(payload, UserRequest):
        if elapsed < budget_ms:
            return Recomputed(
                then, None, "it was stopped for its time; what more of it would have brought is unknown"
            )
        return Recomputed(then, then)
    measured = trajectory.measure(_gap(payload), elapsed, budget_ms)
    decision = _decision(payload, stopped, measured, trajectory, budget_ms)
    if then.exhausted and not decision.state.ends:
        decision = replace(decision, state=MacroState.ABANDON, reason=then.reason, cause="exhausted")
    now = trajectory.record(decision, measured)
    if now.directive is then.directive and not decision.state.ends:
        trajectory.advance(measured, Directive(decision.state.value))
    return Recomputed(then, now)


def _gap(payload: object) -> Gap:
    match payload:
        case OutcomeSummary(task_verdicts=verdicts):
            return Gap(0.0, 0, 0, len(verdicts), Evidence())
        case ReplanRequest() as request:
            return measure(request)
        case PlanRefused():
            return WRONG_APPROACH
        case _:
            return Gap(1.0, 0, 0, 0, Evidence(matched_subtasks=0))


def _decision(
    payload: object, stopped: StoppedBy | None, measured: Measurement, trajectory: Trajectory, budget_ms: float
) -> Decision:
    if measured.elapsed_ms > budget_ms:
        return Decision(MacroState.ABANDON, "stopped: time")
    if isinstance(payload, OutcomeSummary):
        return delivered(open_criteria(payload.outcomes, payload.task_verdicts))
    if stopped is not None:
        return Decision(MacroState.ABANDON, f"stopped: {stopped}")
    return trajectory.decide(measured, may_replan=True)


def deadline_ms(stream: Sequence[Envelope]) -> float:
    """Return the number of milliseconds between the request and the deadline in it. Return infinity if it has no
    deadline."""
    asked = next((each.at for each in stream if isinstance(each.payload, UserRequest)), None)
    plans = (each.payload for each in stream if isinstance(each.payload, Plan))
    deadline = next((plan.deadline for plan in plans if plan.deadline is not None), None)
    if asked is None or deadline is None:
        return float("inf")
    return max(1.0, (deadline - asked).total_seconds() * 1_000)
