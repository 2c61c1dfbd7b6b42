"""R7 (solver), which measures the gap, decides after each round, handles interruption, and ends the task.

It is the controller of the medium loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from artoo.contracts.confirmation import ConfirmationAnswer, ConfirmationRequest
from artoo.contracts.criteria import CheckAmended
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import SubTaskOutcome
from artoo.contracts.findings import NotAgreed, Unheard
from artoo.contracts.memory import MegramState, RuleContradicted
from artoo.contracts.plan import Plan, PlanRefused, SharedPath
from artoo.contracts.request import Interrupt, TaskSpec, UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.settling import Ending, Settled
from artoo.contracts.solution import (
    Cost,
    Directive,
    FinalResult,
    Halt,
    OutcomeSummary,
    PlanDirective,
    ReplanRequest,
    RoleFailure,
    StoppedBy,
)
from artoo.contracts.steering import (
    CourseDirective,
    EffortChosen,
    PlanAnswered,
    PlanProposed,
    QuestionAnswered,
    QuestionAsked,
    Sampled,
    SampleMeasured,
    UserMessage,
)
from artoo.contracts.tags import slug
from artoo.control.decision import Decision, Evidence, MacroState
from artoo.control.effort import BUDGETS
from artoo.control.hyperparameters import Hyperparameters
from artoo.loops.lesson import Lesson
from artoo.loops.medium.advice import mentions
from artoo.loops.medium.allowance import Allowance
from artoo.loops.medium.blocking import another_left, still_open, targets_to_block, tools_to_block
from artoo.loops.medium.endings import Endings, EndState, about_workspace, changed_by_two, open_criteria
from artoo.loops.medium.experience import Experience
from artoo.loops.medium.in_flight import Flight
from artoo.loops.medium.lessons import Lessons, doubted, found_things, met
from artoo.loops.medium.shaping import Schema, formed
from artoo.loops.medium.trajectory import (
    WRONG_APPROACH,
    Gap,
    Measurement,
    Trajectory,
    delivered,
    measure,
    verdicts_of,
)
from artoo.loops.role import listen
from artoo.ports.bus import Port
from artoo.ports.clock import Clock
from artoo.ports.stopwatch import Stopwatch
from artoo.ports.tools import Offered
from artoo.verdicts.shown import is_word_alone
from artoo.words.language import language_of

# Number of seconds that the meta-validator (R4b) has to answer a Halt. After that the solver delivers without its
# answer.
_HALT_GRACE = 2.0

# Reasons to stop for which the user is not asked about the changes. The user has left, or the task may be resumed
# later.
_NOBODY_ASKED = (StoppedBy.INTERRUPTED, StoppedBy.TIME, StoppedBy.NO_MODEL, StoppedBy.INTERNAL)

# Verbs of the questions whether a skill or a server of the project may be used.
_EQUIPS = frozenset({"skill", "start"})

# Efforts from the smallest to the largest.
_EFFORTS = tuple(BUDGETS)

# Number of seconds between two checks of the time budget, because a deadline or a pause may have changed it.
_TIME_STEP = 1.0


@dataclass(slots=True)
class _Task:
    """The state of the solver's task, without the trajectory. `earlier`: the id of the previous task, which this
    one may correct.

    `kind` is the label of the request, known after the first plan. `learnt` holds the lessons of a success, which
    are taught unless the task's changes are discarded. The blocked tools and targets are those of all rounds so
    far. `refusal` is the reason why there is no plan, or empty. `whole` lists the files that the models were shown
    completely. `effort` is the current effort, `flights` holds the samples of running attempts, and `heard` holds
    the ids of the messages that a model has read.
    """

    spec: TaskSpec
    cause: Envelope
    last: ReplanRequest
    earlier: str | None = None
    project: str = ""
    returns: Schema | None = None
    lessons: Lessons = field(default_factory=Lessons)
    kind: str = ""
    taught: bool = False
    learnt: tuple[Lesson, ...] = ()
    blocked_tools: tuple[str, ...] = ()
    blocked_targets: tuple[tuple[str, str], ...] = ()
    amended: tuple[CheckAmended, ...] = ()
    failed: dict[str, SubTaskOutcome] = field(default_factory=dict[str, SubTaskOutcome])
    shared: tuple[SharedPath, ...] = ()
    halted: Halt | None = None
    refusal: str = ""
    whole: tuple[str, ...] = ()
    effort: EffortChosen | None = None
    flights: dict[str, Flight] = field(default_factory=dict[str, Flight])
    heard: set[str] = field(default_factory=set[str])
    ended: bool = False
    closing: tuple[FinalResult, Envelope] | None = None
    """The result, and the message that caused it, until the task's changes are applied or discarded."""
    settled: Settled | None = None


@dataclass(slots=True, eq=False)
class Solver:
    """Measures the gap to the goal after each round, and decides how the task continues. Only this class publishes
    FinalResult.

    If `memory` is None, nothing is remembered. `tuned` maps the slug of an intent to the hyperparameters for tasks
    of that type. `spent` takes the elapsed milliseconds and returns the cost so far. `raise_limits` is called with
    the numbers of calls and tokens that `allowance` gives for the plan's effort.
    """

    port: Port
    endings: Endings
    offered: Offered
    clock: Clock
    budget_ms: float
    spent: Callable[[int], Cost]
    watch: Stopwatch
    trajectory: Trajectory
    memory: Experience | None = None
    tuned: Mapping[str, Hyperparameters] = field(default_factory=dict[str, Hyperparameters])
    allowance: Allowance = field(default_factory=Allowance)
    raise_limits: Callable[[int, int], None] | None = None
    _task: _Task | None = field(default=None, init=False)
    _said: dict[str, str] = field(default_factory=dict[str, str], init=False)
    _held: bool = field(default=False, init=False)
    _asked: dict[str, ConfirmationRequest] = field(default_factory=dict[str, ConfirmationRequest], init=False)
    _not_agreed: tuple[str, ...] = field(default=(), init=False)

    async def run(self) -> None:
        """Listen until the port closes. A separate timer ends the task when its time budget is used up."""
        async with asyncio.TaskGroup() as group:
            timer = group.create_task(self._guard_time())
            await listen(self.port, self._handle)
            timer.cancel()

    async def _handle(self, envelope: Envelope) -> None:
        match envelope.payload:
            case UserRequest() as request:
                self._begin(request, envelope)
            case ConfirmationRequest() as request:
                self.watch.pause()
                self._asked[request.digest] = request
            case ConfirmationAnswer() as answer:
                self.watch.resume()
                self._answered(answer)
            case QuestionAsked() | PlanProposed():
                self.watch.pause()
            case QuestionAnswered() | PlanAnswered():
                self.watch.resume()
            case UserMessage() as message:
                self._hear(message, envelope)
            case Settled() as settled if self._task is not None:
                self._close(self._task, settled)
            case RoleFailure() if self._task is not None and self._task.settled is not None:
                # an error while lessons are written must not prevent the result
                self._deliver_result(self._task, self._task.settled)
            case Interrupt() if self._task is not None and self._task.closing is not None:
                self.port.publish(_ending(self._task.closing[0], self._task, may_ask=False), cause=envelope)
            case _ if self._task is not None and not self._task.ended:
                await self._steer(self._task, envelope)
            case _:
                return

    async def _steer(self, task: _Task, envelope: Envelope) -> None:
        match envelope.payload:
            case TaskSpec() as spec:
                task.spec = spec
                if spec.task_id in self.tuned:
                    self.trajectory.decide_by(self.tuned[spec.task_id])
                if spec.corrects and task.earlier is not None and self.memory is not None:
                    await self.memory.retract(task.earlier, spec, envelope)
            case Plan() as plan:
                task.refusal, task.whole, task.kind = "", plan.whole, plan.label or task.kind
                task.heard.update(plan.heard)
                self._adopt_budgets(task, plan, envelope)
            case Sampled() as sample:
                self._sample(task, sample, envelope)
            case CheckAmended() as amended:
                task.amended += (amended,)
            case RuleContradicted() as rule:
                if self.memory is not None and not rule.noted:
                    self.memory.overrule(rule, envelope)
            case OutcomeSummary() as summary:
                task.heard.update(key for each in summary.outcomes for key in each.heard)
                await self._conclude(task, summary, envelope)
            case ReplanRequest() as request:
                task.heard.update(key for each in request.outcomes for key in each.heard)
                task.last = request
                task.shared += request.shared
                task.failed |= {each.subtask_id: each for each in request.outcomes if each.status == "failed"}
                await self._decide(task, measure(request), request.recommendation == "replan", envelope)
            case PlanRefused() as refused:
                task.refusal, task.kind = "; ".join(refused.reasons), refused.label or task.kind
                task.last = task.last.model_copy(update={"gap_summary": task.refusal})
                await self._decide(task, WRONG_APPROACH, True, envelope)
            case Interrupt() as interrupt:
                self._halt(task, StoppedBy.INTERRUPTED, interrupt.reason, envelope)
            case RoleFailure() as failure:
                await self._on_failure(task, failure, envelope)
            case _:
                return

    def _answered(self, answer: ConfirmationAnswer) -> None:
        """Record which skills or servers of the project the user did not allow. The result reports them as a
        fact."""
        request = self._asked.pop(answer.digest, None)
        if request is not None and not answer.consent.is_yes and any(act.verb in _EQUIPS for act in request.acts):
            self._not_agreed += tuple(f"{act.verb} {act.target}" for act in request.acts)

    def _hear(self, message: UserMessage, envelope: Envelope) -> None:
        """Record a message of the user. A hold pauses the clock until the next message. The clock is paused from a
        hold until the next message."""
        if message.text:
            self._said[envelope.id] = message.text
        if message.hold and not self._held:
            self.watch.pause()
        elif self._held and not message.hold:
            self.watch.resume()
        self._held = message.hold

    def _begin(self, request: UserRequest, envelope: Envelope) -> None:
        self.watch.start()
        language = language_of(request.text)
        unread = TaskSpec(task_id="", intent=request.text, raw_input=request.text, language=language)
        self._task = _Task(
            unread,
            envelope,
            ReplanRequest(task_id=self.port.task_id),
            earlier=request.history[-1].task_id if request.history else None,
            project=request.project,
            returns=request.returns,
        )

    # --- the control law ------------------------------------------------------------------------------------

    async def _decide(self, task: _Task, gap: Gap, may_replan: bool, cause: Envelope) -> None:
        measured = self._measure(gap)
        if task.last.stopped_by is not None:
            decision = Decision(MacroState.ABANDON, f"stopped: {task.last.stopped_by}")
        else:
            decision = self.trajectory.decide(measured, may_replan=may_replan)
            tried = () if task.refusal else task.last.outcomes
            left = another_left(tried, self.offered(), task.blocked_tools)
            decision = self.trajectory.unless_exhausted(decision, another_left=left)
        await self._obey(task, decision, measured, cause)

    async def _conclude(self, task: _Task, summary: OutcomeSummary, cause: Envelope) -> None:
        """Decide a round in which no criterion failed. Its result is accepted only if no criterion is open."""
        verdicts = summary.task_verdicts
        task.shared += summary.shared
        task.last = ReplanRequest(
            task_id=summary.task_id,
            outcomes=summary.outcomes,
            task_verdicts=verdicts,
            merged_output=summary.merged_output,
        )
        measured = self._measure(Gap(0.0, 0, 0, len(verdicts), Evidence()))
        await self._obey(task, delivered(open_criteria(summary.outcomes, verdicts)), measured, cause)

    async def _obey(self, task: _Task, decision: Decision, measured: Measurement, cause: Envelope) -> None:
        self.port.publish(self.trajectory.record(decision, measured), cause=cause)
        match decision.state:
            case MacroState.ABANDON:
                await self._abandon(task, decision, measured, cause)
            case MacroState.ACCEPT | MacroState.SUCCESS:
                await self._deliver(task, Directive(decision.state.value), measured, cause)
            case state:
                await self._direct(task, Directive(state.value), measured, cause)

    async def _direct(self, task: _Task, directive: Directive, measured: Measurement, cause: Envelope) -> None:
        outcomes = task.last.outcomes
        # an answer that no call supports may itself be what is missing
        stands = [each for each in outcomes if each.done and not is_word_alone(each)]
        alternatives = () if self.memory is None else await self.memory.alternatives(_kind(task), cause)
        if task.ended:  # the time ran out while memory was read
            return
        if self.trajectory.blocks_tools(directive):
            task.blocked_tools = tools_to_block(outcomes, self.offered(), task.blocked_tools)
        # Every directive forbids the targets on which tools failed permanently.
        task.blocked_targets = targets_to_block(outcomes, task.blocked_targets)
        previous = self.trajectory.directive
        kind = _kind(task)
        credit = task.lessons.after_break(previous, kind, outcomes)
        self.trajectory.advance(measured, directive)
        message = PlanDirective(
            task_id=self.port.task_id,
            round=self.trajectory.round,
            loss=measured.loss,
            prev_directive=previous,
            directive=directive,
            blocked_tools=task.blocked_tools,
            blocked_targets=task.blocked_targets,
            failed_criterion=_first_unmet(task.last),
            failure_class=measured.gap.failure_class,
            budget_pressure=measured.terms.cost,
            grad_l=measured.gradient,
            urgency=self.trajectory.urgency(measured).value,
            rationale=task.last.gap_summary,
            suggested_alternatives=still_open(alternatives, task.blocked_tools, task.blocked_targets),
            suspicious=self.trajectory.suspicious(measured),
            standing=tuple(stands),
            failed=tuple(outcome for outcome in outcomes if outcome not in stands),
            unmet=tuple(verdict for verdict in task.last.task_verdicts if verdict.verdict == "fail"),
        )
        lessons = (*credit, *task.lessons.directed(message, kind, outcomes), *doubted(message, kind))
        self._teach(task, lessons, cause)
        self.port.publish(message, cause=cause)

    def _measure(self, gap: Gap) -> Measurement:
        return self.trajectory.measure(gap, self.watch.elapsed_ms(), self.budget_ms)

    def _sample(self, task: _Task, sample: Sampled, cause: Envelope) -> None:
        """Measure a sample of a long attempt while it runs, and send its executor a directive if it makes no
        progress."""
        flight = task.flights.get(sample.subtask_id)
        if flight is None or flight.attempt != sample.attempt:
            flight = task.flights[sample.subtask_id] = Flight(sample.attempt)
        elapsed_ms = self.watch.elapsed_ms()
        cost = self.trajectory.cost(elapsed_ms, self.budget_ms)
        course = flight.take(sample, cost, self.trajectory.numbers)
        of, turn, directive = sample.subtask_id, sample.turn, course.directive
        measured = SampleMeasured(
            subtask_id=of,
            turn=turn,
            loss=course.loss,
            grad_l=course.gradient,
            directive=directive,
            ends_attempt=course.ends,
            reason=course.reason,
            elapsed_ms=elapsed_ms,
        )
        self.port.publish(measured, cause=cause, subtask_id=of)
        if directive is not None:
            said = CourseDirective(
                subtask_id=of, turn=turn, directive=directive, text=course.text, ends_attempt=course.ends
            )
            self.port.publish(said, cause=cause, subtask_id=of)

    # --- endings --------------------------------------------------------------------------------------------

    async def _deliver(self, task: _Task, directive: Directive, measured: Measurement, cause: Envelope) -> None:
        """Deliver the result. If the caller asked for a JSON form, the output is converted to it."""
        standing = self._standing(task, measured)
        result = self.endings.delivered(standing, task.last, directive)
        if task.returns is not None:
            result = await formed(self.endings.asker, task.spec.intent, result, task.returns, cause)
        task.learnt = tuple(self._delivered(task, MegramState(directive.value), task.last.outcomes))
        self._finish(task, result, cause)

    async def _abandon(self, task: _Task, decision: Decision, measured: Measurement, cause: Envelope) -> None:
        why = _why(task, decision)
        detail = task.halted.reason if task.halted is not None else task.refusal
        result = await self.endings.abandon(self._standing(task, measured), task.last, why, detail, cause)
        tried = (*task.failed.values(), *task.last.outcomes)
        lessons = task.lessons.abandoned(_kind(task), why.value, tried) if why.teaches else []
        self._finish(task, result, cause, lessons)

    def _delivered(self, task: _Task, state: MegramState, outcomes: tuple[SubTaskOutcome, ...]) -> list[Lesson]:
        if self.memory is None:
            return []
        return [
            *task.lessons.after_break(self.trajectory.directive, _kind(task), outcomes),
            *task.lessons.delivered(state, _kind(task), task.spec.intent, outcomes, task.last.task_verdicts),
            *found_things(mentions(task.spec.raw_input), outcomes, task.project),
        ]

    def _standing(self, task: _Task, measured: Measurement) -> EndState:
        result = FinalResult(
            task_id=self.port.task_id,
            summary="",
            directive=Directive.ABANDON,
            loss=measured.loss,
            grad_l=measured.gradient,
            replans=self.trajectory.replans,
            prev_directive=self.trajectory.directive,
            amended=task.amended,
            language=task.spec.language,
        )
        return EndState(result, task.spec.intent, tuple(task.failed.values()), bool(task.spec.images), task.whole)

    def _finish(self, task: _Task, result: FinalResult, cause: Envelope, lessons: Iterable[Lesson] = ()) -> None:
        """End the task. The result is published after the task's changes are applied or discarded."""
        if not task.ended:
            task.ended = True
            without = (NotAgreed(what=self._not_agreed),) if self._not_agreed else ()
            facts = (
                *result.facts,
                *task.amended,
                *without,
                *changed_by_two(task.shared, (*task.failed.values(), *task.last.outcomes)),
            )
            ended = {"cost": self.spent(round(self.watch.elapsed_ms())), "facts": facts}
            result = result.model_copy(update=ended)
            task.closing = result, cause
            self.port.publish(_ending(result, task, may_ask=result.stopped_by not in _NOBODY_ASKED), cause=cause)
            # last, because an error while lessons are written must not prevent the result
            self._teach(task, lessons, cause)

    def _close(self, task: _Task, settled: Settled) -> None:
        """Write the lessons of a success, and publish the result."""
        if task.closing is not None and task.settled is None:
            task.settled = settled
            if settled.state != "discarded":  # a result whose changes the user discarded was no success
                self._teach(task, task.learnt, task.closing[1])
            self._deliver_result(task, settled)

    def _deliver_result(self, task: _Task, settled: Settled) -> None:
        if task.closing is not None:
            result, cause = task.closing
            task.closing = None
            # A stopped executor has no outcome, so it is not known which messages it has read.
            unread = [] if task.halted else [text for key, text in self._said.items() if key not in task.heard]
            unheard = (Unheard(texts=tuple(unread)),) if unread else ()
            facts = (*result.facts, *about_workspace(settled, result.assurance), *unheard)
            self.port.publish(result.model_copy(update={"changes": settled, "facts": facts}), cause=cause)

    def _teach(self, task: _Task, lessons: Iterable[Lesson], cause: Envelope) -> None:
        listed = tuple(lessons)
        if self.memory is not None and listed:
            known = () if task.taught else (met(_kind(task), task.spec.intent),)
            task.taught = True
            self.memory.teach((*known, *listed), _kind(task), cause)

    # --- stopping -------------------------------------------------------------------------------------------

    def _halt(self, task: _Task, why: StoppedBy, reason: str, cause: Envelope) -> None:
        if task.halted is None:
            task.halted = Halt(stopped_by=why, reason=reason)
            self.port.publish(task.halted, cause=cause)

    async def _on_failure(self, task: _Task, failure: RoleFailure, cause: Envelope) -> None:
        """Stop the task after a role has failed, and ask the meta-validator for the matched results. If the
        meta-validator itself failed, end the task with its last ReplanRequest.

        If the solver fails after a Halt, the result reports only the failure.
        """
        if failure.role is Role.SOLVER and task.halted is not None:
            standing = self._standing(task, self._measure(measure(task.last)))
            self._finish(task, self.endings.bare(standing, failure), cause)
            return
        if failure.role is not Role.META_VALIDATOR:
            self._halt(task, failure.stopped_by, failure.reason, cause)
            return
        task.halted = Halt(stopped_by=failure.stopped_by, reason=failure.reason)
        await self._stop(task, failure.stopped_by, cause)

    async def _stop(self, task: _Task, why: StoppedBy, cause: Envelope) -> None:
        task.last = task.last.model_copy(update={"stopped_by": why, "recommendation": "abandon"})
        await self._decide(task, measure(task.last), False, cause)

    async def _guard_time(self) -> None:
        while self._task is None or self.time_left() > 0:
            await self.clock.sleep(max(0.01, min(_TIME_STEP, self.time_left())))
        task = self._task
        if not task.ended:
            self._halt(task, StoppedBy.TIME, f"{self.budget_ms / 1_000:g} s", task.cause)
            await self.clock.sleep(_HALT_GRACE)
        if not task.ended:
            await self._stop(task, StoppedBy.TIME, task.cause)

    def time_left(self) -> float:
        """Return the seconds left in the task's time budget. The value is negative when the time is over."""
        return (self.budget_ms - self.watch.elapsed_ms()) / 1_000

    def _adopt_budgets(self, task: _Task, plan: Plan, cause: Envelope) -> None:
        """Set the budgets that belong to the plan's effort. A later plan can only enlarge them."""
        chosen = None if plan.effort is None else self.allowance.of(plan.effort)
        before = -1 if task.effort is None else _EFFORTS.index(task.effort.effort)
        grows = chosen is not None and _EFFORTS.index(chosen.effort) > before
        if chosen is not None and grows:
            self.budget_ms = chosen.seconds * 1_000
            if self.raise_limits is not None:
                self.raise_limits(chosen.calls, chosen.tokens)
        self._cap_budget(task, plan)
        if chosen is not None and grows:
            task.effort = chosen.model_copy(update={"seconds": self.budget_ms / 1_000})
            self.port.publish(task.effort, cause=cause)

    def _cap_budget(self, task: _Task, plan: Plan) -> None:
        """Limit the time budget so that the task ends by the deadline, counted from the request. Time in which the
        task waits for a user does not count."""
        if plan.deadline is not None:
            whole = (plan.deadline - task.cause.at).total_seconds() * 1_000
            self.budget_ms = max(1.0, min(self.budget_ms, whole))


def _kind(task: _Task) -> str:
    """Return the label of the request. Return a slug of its intent if the planner has not given it a label yet."""
    return task.kind or slug(task.spec.intent)


def _why(task: _Task, decision: Decision) -> StoppedBy:
    if task.last.stopped_by is not None:
        return task.last.stopped_by
    return {"cost": StoppedBy.COST, "divergence": StoppedBy.DIVERGENCE}.get(decision.cause, StoppedBy.REPLANS)


def _ending(result: FinalResult, task: _Task, *, may_ask: bool) -> Ending:
    return Ending(
        task_id=result.task_id,
        directive=result.directive.value,
        language=task.spec.language,
        may_ask=may_ask,
        may_go_on=result.stopped_by is not None and result.stopped_by.is_infrastructure,
    )


def _first_unmet(request: ReplanRequest) -> str:
    verdicts = verdicts_of(request.outcomes, request.task_verdicts)
    unmet = (verdict.criterion for verdict in verdicts if verdict.verdict == "fail")
    return next(unmet, request.gap_summary[:200])
