"""R2 (planner), which asks for a plan and one repair, with the token limits of a plan.

It is the actuator of the medium loop. It turns a TaskSpec, and later each PlanDirective, into a plan that is
allowed to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta, timezone

from artoo.contracts.criteria import CheckAmended, Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.plan import MOST_SUBTASKS, Caution, MustNot, Plan, PlannedSubTask, PlanRefused
from artoo.contracts.request import TaskSpec
from artoo.contracts.solution import Directive, PlanDirective, RoleFailure, StoppedBy
from artoo.contracts.steering import PlanAnswered, PlanProposed, UserMessage
from artoo.contracts.text import shortened
from artoo.evidence.shown_files import beyond
from artoo.evidence.tokens import paths_in
from artoo.loops.asking import Asker
from artoo.loops.heuristics import Heuristics
from artoo.loops.medium.advice import Advice, Counsel
from artoo.loops.medium.blocking import keeping_hands
from artoo.loops.medium.directive_text import directive_text, failed_checks, may_amend
from artoo.loops.medium.kinds import Kinds
from artoo.loops.medium.plan_draft import (
    Fingerprint,
    PlanDraft,
    SubTaskDraft,
    amended,
    fingerprint,
    merged,
    objections,
    of_person,
    plan_schema,
    subtasks_of,
    verifiable,
)
from artoo.loops.prepared import earlier, today_is
from artoo.loops.role import listen
from artoo.loops.tool_text import prohibitions, tools_to_plan_with
from artoo.ports.bus import Port
from artoo.ports.surroundings import Surroundings, SurroundingsSource
from artoo.ports.tools import Offered, ToolSpec
from artoo.prompts.segments import Segment

_PLAN_TOKENS = 4_000
_SMALL_PLAN_TOKENS = 800
# Number of characters of a refused plan that are shown when the model is asked again.
_DRAFT_SHOWN = 4_000
# The number of times that a user may ask for changes of a plan. After that the task ends.
_MOST_CHANGES = 5
_CHANGED = "The user has changed this request:"


@dataclass(slots=True)
class _PlannedTask:
    """The planner's state over all rounds of a task: the criteria that the user can rely on, and the plans that
    were tried.

    `around` describes the files on disk at the start. Every round shows it, so that all prompts begin alike. `kind`
    is the label of the request, by which memory is asked for advice. The first plan fixes it. `planned` are the
    criteria of the last plan's subtasks.
    """

    spec: TaskSpec
    asked_at: datetime
    around: Surroundings
    kinds: Kinds
    kind: str
    advice: Advice
    criteria: tuple[Criterion, ...] = ()
    planned: tuple[Criterion, ...] = ()
    scope: str | None = None
    deadline: datetime | None = None
    tried: list[Fingerprint] = field(default_factory=list[Fingerprint])
    amended: list[str] = field(default_factory=list[str])

    def owed(self, directive: PlanDirective | None) -> tuple[Criterion, ...]:
        """Return the criteria of the last plan's subtasks that failed or were not judged.

        They become criteria of the task, so that none is lost if the next plan has no subtask for it.
        """
        if directive is None:
            return ()
        settled = {v.criterion for each in directive.standing for v in each.criteria_verdicts}
        settled |= {v.criterion for each in directive.failed for v in each.criteria_verdicts if v.verdict == "pass"}
        failed = {v.criterion for each in directive.failed for v in each.criteria_verdicts if v.verdict == "fail"}
        return tuple(each for each in self.planned if each.text in failed or each.text not in settled)

    def standing(self, directive: PlanDirective | None) -> tuple[Criterion, ...]:
        """Return the criteria that every later plan must meet."""
        return merged(self.criteria, self.owed(directive))

    def amendable(self, directive: PlanDirective | None) -> tuple[str, ...]:
        """Return the criteria whose check the planner wrote and has not yet replaced."""
        own = (each for each in self.standing(directive) if each.check is not None and each.by == "planner")
        return tuple(each.text for each in own if each.text not in self.amended)


@dataclass(frozen=True, slots=True)
class _Round:
    """The input of one draft. `directive` is None in the first round. `around` describes the files on disk now.
    `remarks` are the changes that the user requests in the plan that was `proposed` last.
    """

    number: int
    must_not: MustNot
    around: Surroundings
    directive: PlanDirective | None = None
    proposed: Plan | None = None
    remarks: tuple[str, ...] = ()

    @property
    def carried(self) -> tuple[str, ...]:
        """Return the ids of subtasks from earlier rounds whose results are reused."""
        return tuple(each.subtask_id for each in self.directive.standing) if self.directive is not None else ()


@dataclass(frozen=True, slots=True)
class _Made:
    """A plan that is allowed to run, with the checks that it replaces and the round for which it was made."""

    plan: Plan
    this: _Round
    replaced: tuple[CheckAmended, ...] = ()


@dataclass(frozen=True, slots=True)
class _Refused:
    """A draft that is not allowed to run, in the model's own words, with the reasons against it."""

    draft: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        reasons = "\n".join(f"- {reason}" for reason in self.reasons)
        return (
            f"Your last plan:\n{shortened(self.draft, _DRAFT_SHOWN)}\nIt was refused:\n{reasons}\nFix exactly this."
        )


@dataclass(slots=True, eq=False)
class Planner:
    """Asks for one draft and at most one repair in a round. If the second draft is refused too, the planner
    publishes PlanRefused.

    `approve`: if true, each plan with subtasks is first proposed to the user.
    """

    port: Port
    asker: Asker
    offered: Offered
    surroundings: SurroundingsSource
    counsel: Counsel
    most_subtasks: int = MOST_SUBTASKS
    heuristics: Heuristics = field(default_factory=Heuristics)
    approve: bool = False
    _said: dict[str, str] = field(default_factory=dict[str, str], init=False)
    _proposed: _Made | None = field(default=None, init=False)
    _task: _PlannedTask | None = field(default=None, init=False)

    async def run(self) -> None:
        """Plan until the port closes."""
        await listen(self.port, self._handle)

    async def _handle(self, envelope: Envelope) -> None:
        match envelope.payload:
            case TaskSpec() as spec:
                around = await self.surroundings.look(spec.intent)
                kinds = await self.counsel.kinds(spec.intent, envelope)
                advice = await self.counsel.before(
                    kinds.guess, spec.intent, self.offered(), around.missing, envelope
                )
                asked_at = envelope.at.astimezone(timezone(timedelta(minutes=spec.east)))
                task = self._task = _PlannedTask(spec, asked_at, around, kinds, kinds.guess, advice)
                this = _Round(1, advice.must_not, around)
                # the request itself becomes the only subtask
                if self.asker.known.small and self.heuristics.unplanned:
                    criteria = of_person(spec.intent, spec.checks)
                    only = subtasks_of((SubTaskDraft(intent=spec.intent),), criteria, spec.intent)
                    self._offer(task, _Made(_plan_of(task, this, criteria, only), this), envelope)
                else:
                    await self._plan(task, this, envelope)
            case PlanDirective() as directive if self._task is not None:
                around = await self.surroundings.look(self._task.spec.intent)
                must_not = _together(directive, self._task.advice.must_not, self.offered())
                await self._plan(self._task, _Round(directive.round, must_not, around, directive), envelope)
            case PlanAnswered() as answer if self._task is not None and self._proposed is not None:
                await self._answered(self._task, self._proposed, answer, envelope)
            case UserMessage(text=text) if text:
                self._said[envelope.id] = text
            case _:
                return

    async def _answered(self, task: _PlannedTask, made: _Made, answer: PlanAnswered, cause: Envelope) -> None:
        self._proposed = None
        if answer.decision == "approve":
            self._adopt(task, made, cause)
        elif answer.decision == "change" and len(made.this.remarks) < _MOST_CHANGES:
            remarks = (*made.this.remarks, answer.remarks)
            # Workers, judges and later rounds are shown the request, so the change belongs to it.
            changed = f"{task.spec.intent}\n\n{_CHANGED}\n{answer.remarks}"
            task.spec = task.spec.model_copy(update={"intent": changed})
            await self._plan(task, replace(made.this, proposed=made.plan, remarks=remarks), cause)
        else:
            why = "rejected the plan" if answer.decision == "reject" else f"had {_MOST_CHANGES} plans changed"
            failure = RoleFailure(role=self.port.role, stopped_by=StoppedBy.INTERRUPTED, reason=f"the user {why}")
            self.port.publish(failure, cause=cause)

    def _offer(self, task: _PlannedTask, made: _Made, cause: Envelope) -> None:
        if self.approve and made.plan.subtasks:
            self._proposed = made
            self.port.publish(PlanProposed(plan=made.plan), cause=cause)
        else:
            self._adopt(task, made, cause)

    def _adopt(self, task: _PlannedTask, made: _Made, cause: Envelope) -> None:
        task.criteria, task.scope = made.plan.task_criteria, made.plan.scope
        task.planned = tuple(each for one in made.plan.subtasks for each in one.success_criteria)
        for each in made.replaced:
            task.amended.append(each.criterion)
            self.port.publish(each, cause=cause)
        self.port.publish(made.plan, cause=cause)

    async def _plan(self, task: _PlannedTask, this: _Round, cause: Envelope) -> None:
        refused: _Refused | None = None
        for variant in range(2):
            made = await self._draft(task, this, refused, cause, variant)
            if isinstance(made, _Made):
                self._offer(task, made, cause)
                return
            refused = made
        reasons = () if refused is None else refused.reasons
        self.port.publish(PlanRefused(reasons=reasons, label=task.kind, round=this.number), cause=cause)

    async def _draft(
        self, task: _PlannedTask, this: _Round, refused: _Refused | None, cause: Envelope, variant: int
    ) -> _Made | _Refused:
        specs = tuple(spec for spec in self.offered() if spec.name not in this.must_not.tools)
        # all tools, so that a plan with a blocked tool is refused with the tool's name
        named = tuple(spec.named for spec in self.offered())
        reading = tuple(spec.name for spec in specs if spec.only_reads)
        amendable = () if this.directive is None else may_amend(this.directive, task.amendable(this.directive))
        heard = tuple(self._said)
        try:
            draft = await self.asker.ask(
                "Plan",
                plan_schema(named, self.most_subtasks, reading, amends=bool(amendable)),
                self._segments(task, this, refused, specs),
                cause=cause,
                max_tokens=_SMALL_PLAN_TOKENS if self.asker.known.small else _PLAN_TOKENS,
                variant=variant + this.number - 1 + len(this.remarks),
                images=task.spec.images,
            )
        except ModelAnswerInvalid as error:
            return _Refused(error.answer, (str(error),))
        if this.directive is None and (kind := task.kinds.chosen(draft.label)) != task.kind:
            # The prohibitions were about another kind of request, so they do not apply to this request.
            task.kind = kind
            task.advice = await self.counsel.before(kind, task.spec.intent, specs, this.around.missing, cause)
            this = replace(this, must_not=task.advice.must_not)
        criteria, replaced = _criteria(task, this, draft)
        plan, against = _said(task, this, draft, criteria), list[str]()
        if draft.subtasks:
            plan, against = await self._checked(task, this, draft, criteria, cause, anew=bool(replaced))
        if plan is None:
            return _Refused(draft.model_dump_json(exclude_defaults=True, by_alias=True), tuple(against))
        return _Made(plan.model_copy(update={"effort": draft.effort, "heard": heard}), this, replaced)

    async def _checked(
        self,
        task: _PlannedTask,
        this: _Round,
        draft: PlanDraft,
        criteria: tuple[Criterion, ...],
        cause: Envelope,
        *,
        anew: bool,
    ) -> tuple[Plan | None, list[str]]:
        """Return the draft as a plan, or the reasons against it. `anew`: true if the draft replaces a check."""
        scope = task.scope or draft.scope
        task.deadline = task.deadline or parse_deadline(draft.deadline, task.asked_at)
        owed = {each.text for each in task.owed(this.directive)}
        fresh, intent = not this.carried, task.spec.intent
        shown = frozenset(this.around.whole if self.heuristics.listing and not self.asker.known.small else ())
        subtasks = subtasks_of(draft.subtasks, criteria, intent, fresh=fresh, scope=scope, owed=owed, shown=shown)
        must_differ = this.directive is not None and this.directive.directive is Directive.BREAK_SYMMETRY
        # the same plan may run again, because only its check was wrong
        tried = task.tried if must_differ and not anew else ()
        found = objections(subtasks, this.must_not, tried)
        against, cautions = await self.counsel.on_draft(subtasks, this.must_not.targets, cause)
        if found or against:
            return None, [*found, *against]
        wanted = "\n".join((task.spec.intent, *(subtask.intent for subtask in subtasks)))
        # files that the plan names and the request does not
        if frozenset(paths_in(wanted)) - frozenset(paths_in(task.spec.intent)) - shown:
            this = replace(this, around=_with(this.around, await self.surroundings.look(wanted)))
        task.tried.append(fingerprint(subtasks))
        return _plan_of(task, this, criteria, subtasks, cautions, scope), []

    def _segments(
        self, task: _PlannedTask, this: _Round, refused: _Refused | None, specs: tuple[ToolSpec, ...]
    ) -> dict[Segment, str]:
        spec, advice = task.spec, task.advice if self.heuristics.lessons else Advice()
        if self.heuristics.lessons and this.directive is None and not self.asker.known.small:
            advice = advice.with_kinds(task.kinds.told())
        checks = "\n".join(("The user's own checks:", *(f"- {each.text}" for each in spec.checks)))
        standing = "\n".join(f"- {each.text}" for each in task.standing(this.directive))
        standing = f"Criteria that hold in any case:\n{standing}" if standing else ""
        said = "\n".join(f"- {text}" for text in self._said.values())
        said = f"The user wrote while the task was running:\n{said}" if said else ""
        since = _since(task.around, this.around) if self.heuristics.listing else ""
        now = task.asked_at.isoformat(timespec="minutes")
        return {
            **tools_to_plan_with(specs),
            Segment.PROJECT_GUIDE: this.around.guide,
            **advice.segments(prohibitions(this.must_not)),
            Segment.ENVIRONMENT: today_is(task.asked_at),
            Segment.SESSION: earlier(spec),
            Segment.SURROUNDINGS: task.around.listing if self.heuristics.listing else "",
            Segment.TASK: spec.intent,
            Segment.DIRECTIVE: ""
            if this.directive is None
            else directive_text(this.directive, task.amendable(this.directive)),
            Segment.CONTEXT: "\n\n".join(
                filter(None, (f"Now: {now}", since, checks if spec.checks else "", standing, said))
            ),
            Segment.CLOSING: "\n\n".join(filter(None, (_change(this), "" if refused is None else str(refused)))),
        }


def _with(around: Surroundings, more: Surroundings) -> Surroundings:
    """Return the surroundings, extended by the files that a second look found."""
    heads = "\n".join(filter(None, (around.heads, beyond(around.listing, more.heads))))
    whole = tuple(dict.fromkeys((*around.whole, *more.whole)))
    return replace(around, heads=heads, whole=whole, guide=more.guide)


def _since(first: Surroundings, now: Surroundings) -> str:
    """Return text about the changes on disk since the listing at the beginning of the prompts."""
    done = f"Done in this task so far:\n{now.changed}" if now.changed else ""
    shown = beyond(first.listing, now.heads)
    return "\n".join(filter(None, (done, f"Files as they are now:\n{shown}" if shown else "")))


def _change(this: _Round) -> str:
    """Return the text that asks the model for the changes that the user requests in the proposed plan."""
    if this.proposed is None:
        return ""
    steps = "\n".join(f"- {each.intent}" for each in this.proposed.subtasks)
    criteria = "\n".join(f"- {each.text}" for each in this.proposed.task_criteria)
    wanted = "\n".join(f"- {each}" for each in this.remarks)
    return f"You proposed:\n{steps}\nCriteria:\n{criteria}\nThe user wants it changed:\n{wanted}\nPlan again."


def _said(task: _PlannedTask, this: _Round, draft: PlanDraft, criteria: tuple[Criterion, ...]) -> Plan:
    """Return the draft's reply or question as a plan. If no criterion needs judgement, the request itself is added
    as a criterion."""
    if not any(each.check is None for each in criteria):
        criteria = merged(criteria, of_person(task.spec.intent, task.spec.checks))
    said = {"reply": reply} if (reply := draft.reply.strip()) else {"question": draft.question.strip()}
    return _plan_of(task, this, criteria, ()).model_copy(update=said)


def _plan_of(
    task: _PlannedTask,
    this: _Round,
    criteria: tuple[Criterion, ...],
    subtasks: tuple[PlannedSubTask, ...],
    cautions: Sequence[Caution] = (),
    scope: str | None = None,
) -> Plan:
    return Plan(
        task_criteria=criteria,
        subtasks=subtasks,
        label=task.kind,
        deadline=task.deadline,
        scope=scope,
        surroundings=task.around.listing,
        heads=this.around.heads,
        whole=this.around.whole,
        named_files=this.around.named,
        guide=this.around.guide,
        images=task.spec.images,
        must_not=this.must_not,
        cautions=tuple(dict.fromkeys((*task.advice.cautions, *cautions))),
        carried=this.carried,
        round=this.number,
    )


def _criteria(
    task: _PlannedTask, this: _Round, draft: PlanDraft
) -> tuple[tuple[Criterion, ...], tuple[CheckAmended, ...]]:
    """Return all criteria of the task and the checks that were replaced. The criteria are the standing ones, with
    replaced checks, followed by the criteria of this draft.

    If the only subtask does the whole task, its criteria count as criteria of the task. If there are no criteria at
    all, the request itself is the criterion.
    """
    only = draft.subtasks[0].success_criteria if len(draft.subtasks) == 1 and not this.carried else ()
    drafted = verifiable((*draft.task_criteria, *only))
    if not task.criteria:
        several = len(draft.subtasks) > 1  # the meta-validator judges these criteria on the whole answer anyway
        unsaid = draft.subtasks and not drafted and (several or not task.spec.checks)
        return (of_person(task.spec.intent, task.spec.checks) if unsaid else merged(task.spec.checks, drafted)), ()
    failed = failed_checks(this.directive) if this.directive is not None else {}
    standing, replaced = amended(task.standing(this.directive), draft.amend, failed, task.amended)
    return merged(standing, drafted), replaced


def _together(directive: PlanDirective, remembered: MustNot, specs: Sequence[ToolSpec]) -> MustNot:
    """Join the tools that the solver blocked with those that memory forbids. Tools that memory forbids are left out
    if too few tools would remain."""
    return MustNot(
        tools=keeping_hands((*directive.blocked_tools, *remembered.tools), specs),
        targets=tuple(dict.fromkeys((*directive.blocked_targets, *remembered.targets))),
    )


def parse_deadline(text: str | None, now: datetime) -> datetime | None:
    """Parse an ISO 8601 time as an aware datetime. A time without a zone is in the zone of `now`. A date without a
    time means the end of that day. Return None if the text is no time, or if the time has passed, because a past
    deadline limits nothing.
    """
    try:
        moment = datetime.fromisoformat((text or "").strip())
    except ValueError:
        return None
    if moment.time() == time() and ":" not in (text or ""):
        moment = moment.replace(hour=23, minute=59, second=59)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    return moment if moment > now else None
