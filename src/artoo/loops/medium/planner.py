"""R2, the actuator of the medium loop: turns a TaskSpec, later a PlanDirective, into a plan that may run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from artoo.contracts.criteria import CheckAmended, Criterion
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.plan import MustNot, Plan, PlanRefused
from artoo.contracts.request import TaskSpec
from artoo.contracts.solution import Directive, PlanDirective
from artoo.loops.asking import Asker
from artoo.loops.heuristics import Heuristics
from artoo.loops.medium.advice import Advice
from artoo.loops.medium.blocking import keeping_hands
from artoo.loops.medium.counsel import Counsel
from artoo.loops.medium.directive_text import directive_text, failed_checks
from artoo.loops.medium.plan_check import Fingerprint, PlanRules, fingerprint, objections
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
from artoo.loops.role import listen
from artoo.loops.tool_text import prohibitions, tool_segments
from artoo.ports.bus import Port
from artoo.ports.recall import Recall
from artoo.ports.surroundings import Surroundings, SurroundingsSource
from artoo.ports.tools import Offered, ToolSpec
from artoo.prompts.segments import Segment

_PLAN_TOKENS = 4_000
_SMALL_PLAN_TOKENS = 800


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


class Planner:
    """One draft and at most one repair a round; a second refusal is reported, not argued with."""

    def __init__(
        self,
        port: Port,
        asker: Asker,
        offered: Offered,
        surroundings: SurroundingsSource,
        *,
        recall: Recall | None = None,
        most_subtasks: int = 8,
        heuristics: Heuristics | None = None,
    ) -> None:
        """`recall` None: plans without memory."""
        self._counsel = Counsel(port, recall)
        self._port = port
        self._asker = asker
        self._offered = offered
        self._surroundings = surroundings
        self._most_subtasks = most_subtasks
        self._heuristics = heuristics or Heuristics()
        self._task: _Task | None = None

    async def run(self) -> None:
        """Plans until the port closes."""
        await listen(self._port, self._handle)

    async def _handle(self, envelope: Envelope) -> None:
        match envelope.payload:
            case TaskSpec() as spec:
                around = await self._surroundings.look(spec.intent)
                advice = await self._counsel.before(spec.intent, self._offered(), around.missing, envelope)
                task = self._task = _Task(spec, envelope.at, advice)
                this = _Round(1, advice.must_not, around)
                if self._asker.known.small and self._heuristics.unplanned:
                    self._publish_unplanned(task, this, envelope)
                else:
                    await self._plan(task, this, envelope)
            case PlanDirective() as directive if self._task is not None:
                around = await self._surroundings.look(self._task.spec.intent)
                must_not = _together(directive, self._task.advice.must_not, self._offered())
                await self._plan(self._task, _Round(directive.round, must_not, around, directive), envelope)
            case _:
                return

    def _publish_unplanned(self, task: _Task, this: _Round, cause: Envelope) -> None:
        """The request is its own only subtask."""
        spec = task.spec
        criteria = of_person(spec.intent, spec.checks)
        only = subtasks_of((SubTaskDraft(intent=spec.intent),), criteria, spec.intent)
        self._port.publish(
            Plan(
                task_criteria=criteria,
                subtasks=only,
                surroundings=this.around.listing,
                guide=this.around.guide,
                images=spec.images,
                must_not=this.must_not,
                cautions=task.advice.cautions,
                round=this.number,
            ),
            cause=cause,
        )

    async def _plan(self, task: _Task, this: _Round, cause: Envelope) -> None:
        reasons: list[str] = []
        for variant in range(2):
            plan, reasons = await self._draft(task, this, reasons, cause, variant)
            if plan is not None:
                task.criteria, task.scope = plan.task_criteria, plan.scope
                self._port.publish(plan, cause=cause)
                return
        self._port.publish(PlanRefused(reasons=tuple(reasons), round=this.number), cause=cause)

    async def _draft(
        self, task: _Task, this: _Round, objected: list[str], cause: Envelope, variant: int
    ) -> tuple[Plan | None, list[str]]:
        specs = tuple(spec for spec in self._offered() if spec.name not in this.must_not.tools)
        names = tuple(spec.name for spec in specs)
        try:
            draft = await self._asker.ask(
                "Plan",
                plan_schema(names, self._most_subtasks),
                self._segments(task, this, objected, specs),
                cause=cause,
                max_tokens=_SMALL_PLAN_TOKENS if self._asker.known.small else _PLAN_TOKENS,
                variant=variant + this.number - 1,
                images=task.spec.images,
            )
        except ModelAnswerInvalid as error:
            return None, [str(error)]
        if draft.reply.strip() and not draft.subtasks:
            criteria = merged(task.criteria, of_person(task.spec.intent, task.spec.checks))
            return Plan(reply=draft.reply.strip(), task_criteria=criteria, round=this.number), []
        return await self._checked(task, this, draft, names, cause)

    async def _checked(
        self, task: _Task, this: _Round, draft: PlanDraft, names: tuple[str, ...], cause: Envelope
    ) -> tuple[Plan | None, list[str]]:
        """The draft as a plan, or what speaks against it."""
        criteria, replaced = _criteria(task, this, draft)
        scope = task.scope or draft.scope
        task.deadline = task.deadline or parse_deadline(draft.deadline, task.asked_at)
        subtasks = subtasks_of(draft.subtasks, criteria, task.spec.intent, fresh=not this.carried, scope=scope)
        must_differ = this.directive is not None and this.directive.directive is Directive.BREAK_SYMMETRY
        rules = PlanRules(
            tools=names,
            must_not=this.must_not,
            tried=tuple(task.tried) if must_differ else (),
            most_subtasks=self._most_subtasks,
        )
        found = objections(subtasks, criteria, rules)
        against, cautions = await self._counsel.on_draft(subtasks, cause)
        if found or against:
            return None, [*found, *against]
        task.tried.append(fingerprint(subtasks))
        for each in replaced:
            task.amended.append(each.criterion)
            self._port.publish(each, cause=cause)
        return Plan(
            task_criteria=criteria,
            subtasks=subtasks,
            deadline=task.deadline,
            scope=scope,
            surroundings=this.around.listing,
            guide=this.around.guide,
            images=task.spec.images,
            must_not=this.must_not,
            cautions=tuple(dict.fromkeys((*task.advice.cautions, *cautions))),
            carried=this.carried,
            round=this.number,
        ), []

    def _segments(
        self, task: _Task, this: _Round, objected: list[str], specs: tuple[ToolSpec, ...]
    ) -> dict[Segment, str]:
        refused = "\n".join(f"- {reason}" for reason in objected)
        spec, advice = task.spec, task.advice if self._heuristics.lessons else Advice()
        checks = "\n".join(f"- {each.text}" for each in spec.checks)
        standing = "\n".join(f"- {each.text}" for each in task.criteria)
        return {
            **tool_segments(specs),
            Segment.PROJECT_GUIDE: this.around.guide,
            **advice.segments(prohibitions(this.must_not)),
            Segment.ENVIRONMENT: f"Now: {task.asked_at.isoformat(timespec='minutes')}",
            Segment.SURROUNDINGS: this.around.listing if self._heuristics.listing else "",
            Segment.TASK: spec.intent + (f"\nThe person's own checks:\n{checks}" if checks else ""),
            Segment.DIRECTIVE: directive_text(this.directive) if this.directive is not None else "",
            Segment.CONTEXT: f"Criteria that stand:\n{standing}" if standing else "",
            Segment.CLOSING: f"Your last plan was refused:\n{refused}\nMend exactly this." if refused else "",
        }


def _criteria(
    task: _Task, this: _Round, draft: PlanDraft
) -> tuple[tuple[Criterion, ...], tuple[CheckAmended, ...]]:
    """What stood before, less checks that could not hold, then what this draft adds; and what was replaced.

    The criteria of an only subtask that does the whole are the task's.
    """
    only = draft.subtasks[0].success_criteria if len(draft.subtasks) == 1 and not this.carried else ()
    drafted = verifiable((*draft.task_criteria, *only))
    if not task.criteria:
        several = len(draft.subtasks) > 1 and not drafted  # R4b's call, which is made anyhow, judges the whole
        return (of_person(task.spec.intent, task.spec.checks) if several else merged(task.spec.checks, drafted)), ()
    failed = failed_checks(this.directive) if this.directive is not None else ()
    standing, replaced = amended(task.criteria, draft.amend, failed, task.amended)
    return merged(standing, drafted), replaced


def _together(directive: PlanDirective, remembered: MustNot, specs: Sequence[ToolSpec]) -> MustNot:
    """What R7 blocked and what memory says to avoid; of the two, memory yields when no hands would be left."""
    return MustNot(
        tools=keeping_hands((*directive.blocked_tools, *remembered.tools), specs),
        targets=tuple(dict.fromkeys((*directive.blocked_targets, *remembered.targets))),
    )


def parse_deadline(text: str | None, now: datetime) -> datetime | None:
    """An ISO 8601 time as an aware datetime; a bare date means the end of that day; None when it is none."""
    try:
        moment = datetime.fromisoformat((text or "").strip())
    except ValueError:
        return None
    if len((text or "").strip()) == len("2026-01-01"):
        moment = moment.replace(hour=23, minute=59, second=59)
    return moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
