"""R2, the actuator of the medium loop: turns a TaskSpec, later a PlanDirective, into a plan that may run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta, timezone

from artoo.contracts.criteria import CheckAmended, Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.plan import Caution, MustNot, Plan, PlannedSubTask, PlanRefused
from artoo.contracts.request import TaskSpec
from artoo.contracts.solution import Directive, PlanDirective
from artoo.evidence.tokens import paths_in
from artoo.loops.asking import Asker
from artoo.loops.heuristics import Heuristics
from artoo.loops.medium.advice import Advice
from artoo.loops.medium.blocking import keeping_hands
from artoo.loops.medium.counsel import Counsel
from artoo.loops.medium.directive_text import directive_text, failed_checks
from artoo.loops.medium.plan_check import Fingerprint, fingerprint, objections
from artoo.loops.medium.plan_draft import (
    PlanDraft,
    SubTaskDraft,
    amended,
    merged,
    of_person,
    plan_schema,
    subtasks_of,
    verifiable,
)
from artoo.loops.prepared import earlier
from artoo.loops.role import listen
from artoo.loops.tool_text import prohibitions, tool_segments
from artoo.ports.bus import Port
from artoo.ports.surroundings import Surroundings, SurroundingsSource
from artoo.ports.tools import Offered, ToolSpec
from artoo.prompts.segments import Segment

_PLAN_TOKENS = 4_000
_SMALL_PLAN_TOKENS = 800
_Made = tuple[tuple[Criterion, ...], tuple[CheckAmended, ...]]


@dataclass(slots=True)
class _Task:
    """What R2 keeps of its task over the rounds: the contract with the person, and the plans already tried."""

    spec: TaskSpec
    asked_at: datetime
    advice: Advice
    criteria: tuple[Criterion, ...] = ()
    scope: str | None = None
    deadline: datetime | None = None
    tried: list[Fingerprint] = field(default_factory=list[Fingerprint])
    amended: list[str] = field(default_factory=list[str])

    @property
    def amendable(self) -> tuple[str, ...]:
        """The criteria whose check may be replaced if it fails."""
        own = (each.text for each in self.criteria if each.check is not None and each.by == "planner")
        return tuple(text for text in own if text not in self.amended)


@dataclass(frozen=True, slots=True)
class _Round:
    """`directive` None: the first round. `around` is what is on disk now."""

    number: int
    must_not: MustNot
    around: Surroundings
    directive: PlanDirective | None = None

    @property
    def carried(self) -> tuple[str, ...]:
        """Earlier subtasks that stand."""
        return tuple(each.subtask_id for each in self.directive.standing) if self.directive is not None else ()


@dataclass(slots=True, eq=False)
class Planner:
    """One draft and at most one repair a round; a second refusal is reported, not argued with."""

    port: Port
    asker: Asker
    offered: Offered
    surroundings: SurroundingsSource
    counsel: Counsel
    most_subtasks: int = 8
    heuristics: Heuristics = field(default_factory=Heuristics)
    _task: _Task | None = field(default=None, init=False)

    async def run(self) -> None:
        """Plans until the port closes."""
        await listen(self.port, self._handle)

    async def _handle(self, envelope: Envelope) -> None:
        match envelope.payload:
            case TaskSpec() as spec:
                around = await self.surroundings.look(spec.intent)
                advice = await self.counsel.before(spec.intent, self.offered(), around.missing, envelope)
                task = self._task = _Task(
                    spec, envelope.at.astimezone(timezone(timedelta(minutes=spec.east))), advice
                )
                this = _Round(1, advice.must_not, around)
                if self.asker.known.small and self.heuristics.unplanned:  # the request is its own only subtask
                    criteria = of_person(spec.intent, spec.checks)
                    only = subtasks_of((SubTaskDraft(intent=spec.intent),), criteria, spec.intent)
                    self.port.publish(_plan_of(task, this, criteria, only), cause=envelope)
                else:
                    await self._plan(task, this, envelope)
            case PlanDirective() as directive if self._task is not None:
                around = await self.surroundings.look(self._task.spec.intent)
                must_not = _together(directive, self._task.advice.must_not, self.offered())
                await self._plan(self._task, _Round(directive.round, must_not, around, directive), envelope)
            case _:
                return

    async def _plan(self, task: _Task, this: _Round, cause: Envelope) -> None:
        reasons: list[str] = []
        for variant in range(2):
            plan, reasons = await self._draft(task, this, reasons, cause, variant)
            if plan is not None:
                task.criteria, task.scope = plan.task_criteria, plan.scope
                self.port.publish(plan, cause=cause)
                return
        self.port.publish(PlanRefused(reasons=tuple(reasons), round=this.number), cause=cause)

    async def _draft(
        self, task: _Task, this: _Round, objected: list[str], cause: Envelope, variant: int
    ) -> tuple[Plan | None, list[str]]:
        specs = tuple(spec for spec in self.offered() if spec.name not in this.must_not.tools)
        try:
            draft = await self.asker.ask(
                "Plan",
                plan_schema(tuple(spec.named for spec in specs), self.most_subtasks),
                self._segments(task, this, objected, specs),
                cause=cause,
                max_tokens=_SMALL_PLAN_TOKENS if self.asker.known.small else _PLAN_TOKENS,
                variant=variant + this.number - 1,
                images=task.spec.images,
            )
        except ModelAnswerInvalid as error:
            return None, [str(error)]
        made = _criteria(task, this, draft)
        said = (_said(task, this, draft, made[0]), list[str]())
        plan, against = await self._checked(task, this, draft, made, cause) if draft.subtasks else said
        for each in made[1] if plan is not None else ():
            task.amended.append(each.criterion)
            self.port.publish(each, cause=cause)
        return plan, against

    async def _checked(
        self, task: _Task, this: _Round, draft: PlanDraft, made: _Made, cause: Envelope
    ) -> tuple[Plan | None, list[str]]:
        """The draft as a plan, or what speaks against it."""
        criteria, replaced = made
        scope = task.scope or draft.scope
        task.deadline = task.deadline or parse_deadline(draft.deadline, task.asked_at)
        subtasks = subtasks_of(draft.subtasks, criteria, task.spec.intent, fresh=not this.carried, scope=scope)
        must_differ = this.directive is not None and this.directive.directive is Directive.BREAK_SYMMETRY
        tried = task.tried if must_differ and not replaced else ()  # a plan may be right, and its check not
        found = objections(subtasks, criteria, this.must_not.targets, tried)
        against, cautions = await self.counsel.on_draft(subtasks, this.must_not.targets, cause)
        if found or against:
            return None, [*found, *against]
        wanted = "\n".join((task.spec.intent, *(subtask.intent for subtask in subtasks)))
        if frozenset(paths_in(wanted)) - frozenset(paths_in(task.spec.intent)):  # files that only the plan names
            this = replace(this, around=await self.surroundings.look(wanted))
        task.tried.append(fingerprint(subtasks))
        return _plan_of(task, this, criteria, subtasks, cautions, scope), []

    def _segments(
        self, task: _Task, this: _Round, objected: list[str], specs: tuple[ToolSpec, ...]
    ) -> dict[Segment, str]:
        refused = "\n".join(f"- {reason}" for reason in objected)
        spec, advice = task.spec, task.advice if self.heuristics.lessons else Advice()
        checks = "\n".join(f"- {each.text}" for each in spec.checks)
        standing = "\n".join(f"- {each.text}" for each in task.criteria)
        done = f"\nDone in this task so far:\n{this.around.changed}" if this.around.changed else ""
        around = f"{this.around.listing}{done}".strip()
        return {
            **tool_segments(specs),
            Segment.PROJECT_GUIDE: this.around.guide,
            **advice.segments(prohibitions(this.must_not)),
            Segment.ENVIRONMENT: f"Now: {task.asked_at.isoformat(timespec='minutes')}",
            Segment.SESSION: earlier(spec),
            Segment.SURROUNDINGS: around if self.heuristics.listing else "",
            Segment.TASK: spec.intent + (f"\nThe person's own checks:\n{checks}" if checks else ""),
            Segment.DIRECTIVE: directive_text(this.directive, task.amendable) if this.directive is not None else "",
            Segment.CONTEXT: f"Criteria that stand:\n{standing}" if standing else "",
            Segment.CLOSING: f"Your last plan was refused:\n{refused}\nMend exactly this." if refused else "",
        }


def _said(task: _Task, this: _Round, draft: PlanDraft, criteria: tuple[Criterion, ...]) -> Plan:
    """A reply or a question as a plan. What no check can hold words to, the request itself does."""
    if not any(each.check is None for each in criteria):
        criteria = merged(criteria, of_person(task.spec.intent, task.spec.checks))
    said = {"reply": reply} if (reply := draft.reply.strip()) else {"question": draft.question.strip()}
    return _plan_of(task, this, criteria, ()).model_copy(update=said)


def _plan_of(
    task: _Task,
    this: _Round,
    criteria: tuple[Criterion, ...],
    subtasks: tuple[PlannedSubTask, ...],
    cautions: Sequence[Caution] = (),
    scope: str | None = None,
) -> Plan:
    return Plan(
        task_criteria=criteria,
        subtasks=subtasks,
        deadline=task.deadline,
        scope=scope,
        surroundings=this.around.listing,
        heads=this.around.heads,
        named_files=this.around.named,
        guide=this.around.guide,
        images=task.spec.images,
        must_not=this.must_not,
        cautions=tuple(dict.fromkeys((*task.advice.cautions, *cautions))),
        carried=this.carried,
        round=this.number,
    )


def _criteria(task: _Task, this: _Round, draft: PlanDraft) -> _Made:
    """What stood before, less checks that could not hold, then what this draft adds; and what was replaced.

    The criteria of an only subtask that does the whole are the task's.
    """
    only = draft.subtasks[0].success_criteria if len(draft.subtasks) == 1 and not this.carried else ()
    drafted = verifiable((*draft.task_criteria, *only))
    if not task.criteria:
        several = len(draft.subtasks) > 1 and not drafted  # R4b's call, which is made anyhow, judges the whole
        return (of_person(task.spec.intent, task.spec.checks) if several else merged(task.spec.checks, drafted)), ()
    failed = failed_checks(this.directive) if this.directive is not None else {}
    standing, replaced = amended(task.criteria, draft.amend, failed, task.amended)
    return merged(standing, drafted), replaced


def _together(directive: PlanDirective, remembered: MustNot, specs: Sequence[ToolSpec]) -> MustNot:
    """What R7 blocked and what memory says to avoid; of the two, memory yields when no hands would be left."""
    return MustNot(
        tools=keeping_hands((*directive.blocked_tools, *remembered.tools), specs),
        targets=tuple(dict.fromkeys((*directive.blocked_targets, *remembered.targets))),
    )


def parse_deadline(text: str | None, now: datetime) -> datetime | None:
    """An ISO 8601 time as an aware datetime, in the zone of `now` without one; a bare date means the end of that
    day. None when it is none, or over: a time that has passed limits nothing."""
    try:
        moment = datetime.fromisoformat((text or "").strip())
    except ValueError:
        return None
    if moment.time() == time() and ":" not in (text or ""):
        moment = moment.replace(hour=23, minute=59, second=59)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    return moment if moment > now else None
