"""R2, the actuator of the medium loop: turns a TaskSpec, later a PlanDirective, into a plan that may run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from artoo.contracts.criteria import Criterion, Mode
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.plan import MustNot, Plan, PlanRefused
from artoo.contracts.request import TaskSpec
from artoo.contracts.solution import Directive, PlanDirective
from artoo.loops.asking import Asker
from artoo.loops.medium.advice import Advice
from artoo.loops.medium.blocking import keeping_hands
from artoo.loops.medium.counsel import Counsel
from artoo.loops.medium.directive_text import directive_text
from artoo.loops.medium.drafted_checks import kept
from artoo.loops.medium.plan_check import PlanRules, fingerprint, objections
from artoo.loops.medium.plan_draft import complete, condensed, plan_schema, programmed
from artoo.loops.medium.request_criteria import criteria_of
from artoo.loops.named_files import named_files
from artoo.loops.role import listen
from artoo.loops.tool_text import describe_tools, prohibitions
from artoo.ports.bus import Port
from artoo.ports.recall import Recall
from artoo.ports.surroundings import Surroundings, SurroundingsSource
from artoo.ports.tools import Tools, ToolSpec
from artoo.prompts.segments import Segment

_PLAN_TOKENS = 1_200


@dataclass(slots=True)
class _Task:
    """What R2 keeps of its task over the rounds: the contract with the person, and the plans already tried."""

    spec: TaskSpec
    surroundings: Surroundings
    advice: Advice
    criteria: tuple[Criterion, ...] = ()
    tried: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class _Round:
    number: int
    must_not: MustNot
    text: str = ""
    carried: tuple[str, ...] = ()
    must_differ: bool = False


class Planner:
    """One draft and at most one repair a round; a second refusal is reported, not argued with."""

    def __init__(
        self,
        port: Port,
        asker: Asker,
        tools: Tools,
        surroundings: SurroundingsSource,
        *,
        recall: Recall | None = None,
        most_subtasks: int = 8,
    ) -> None:
        """`recall` None: plans without memory."""
        self._counsel = Counsel(port, recall)
        self._port = port
        self._asker = asker
        self._tools = tools
        self._surroundings = surroundings
        self._most_subtasks = most_subtasks
        self._task: _Task | None = None

    async def run(self) -> None:
        """Plans until the port closes."""
        await listen(self._port, self._handle)

    async def _handle(self, envelope: Envelope) -> None:
        match envelope.payload:
            case TaskSpec() as spec:
                around = await self._surroundings.look(spec.intent)
                advice = await self._counsel.before(spec.intent, self._tools.specs, around.missing, envelope)
                task = self._task = _Task(spec, around, advice, criteria_of(spec.intent))
                await self._plan(task, _Round(1, advice.must_not), envelope)
            case PlanDirective() as directive if self._task is not None:
                must_not = _together(directive, self._task.advice.must_not, self._tools.specs)
                await self._plan(self._task, _round_of(directive, must_not), envelope)
            case _:
                return

    async def _plan(self, task: _Task, this: _Round, cause: Envelope) -> None:
        reasons: list[str] = []
        for variant in range(2):
            plan, reasons = await self._draft(task, this, reasons, cause, variant)
            if plan is not None:
                task.criteria = plan.task_criteria
                self._port.publish(plan, cause=cause)
                return
        self._port.publish(PlanRefused(reasons=tuple(reasons), round=this.number), cause=cause)

    async def _draft(
        self, task: _Task, this: _Round, objected: list[str], cause: Envelope, variant: int
    ) -> tuple[Plan | None, list[str]]:
        specs = tuple(spec for spec in self._tools.specs if spec.name not in this.must_not.tools)
        names = tuple(spec.name for spec in specs)
        try:
            draft = await self._asker.ask(
                "Plan",
                plan_schema(names, self._most_subtasks),
                self._segments(task, this, objected, specs),
                cause=cause,
                max_tokens=_PLAN_TOKENS,
                variant=variant + this.number - 1,
            )
        except ModelAnswerInvalid as error:
            return None, [str(error)]
        # A large model knows how it wants to word an answer; a small one makes that up.
        draft, left_out = kept(draft, task.spec.intent) if self._asker.small else (draft, ())
        whole = None if this.carried else task.spec.intent
        if whole is not None:
            looking = {spec.name for spec in specs if not spec.writes and not spec.languages}
            programs = {spec.name for spec in specs if spec.languages}
            draft = condensed(draft, looking, programs, small_model=self._asker.small)
            if named_files(whole).inputs:
                writing = {spec.name for spec in specs if spec.writes and not spec.languages}
                running = [spec.name for spec in reversed(specs) if spec.languages]
                draft = programmed(draft, writing, running, small_model=self._asker.small)
        context = _context(task, alone=whole is not None and len(draft.subtasks) == 1)
        subtasks, criteria = complete(draft, task.criteria, _fallback(task.spec), context, whole)
        rules = PlanRules(
            tools=names,
            must_not=this.must_not,
            tried=tuple(task.tried) if this.must_differ else (),
            most_subtasks=self._most_subtasks,
        )
        drafted = [(each.sequence, each.tool, each.intent) for each in draft.subtasks]
        found = objections(subtasks, criteria, rules, drafted)
        against, cautions = await self._counsel.on_draft(drafted, cause)
        found += against
        if found:
            return None, found
        task.tried.append(fingerprint(drafted))
        return Plan(
            task_criteria=criteria,
            subtasks=subtasks,
            must_not=this.must_not,
            cautions=tuple(dict.fromkeys((*task.advice.cautions, *cautions))),
            carried=this.carried,
            left_out=left_out,
            round=this.number,
        ), []

    def _segments(
        self, task: _Task, this: _Round, objected: list[str], specs: tuple[ToolSpec, ...]
    ) -> dict[Segment, str]:
        refused = "\n".join(f"- {reason}" for reason in objected)
        return {
            Segment.TOOLS: describe_tools(specs),
            Segment.PROJECT_GUIDE: task.surroundings.guide,
            **task.advice.segments(prohibitions(this.must_not)),
            Segment.SURROUNDINGS: task.surroundings.listing,
            Segment.TASK: _request(task.spec),
            Segment.DIRECTIVE: this.text,
            Segment.CLOSING: f"Your last plan was refused:\n{refused}\nMend exactly this." if refused else "",
        }


def _together(directive: PlanDirective, remembered: MustNot, specs: Sequence[ToolSpec]) -> MustNot:
    """What R7 blocked and what memory says to avoid; of the two, memory yields when no hands would be left."""
    return MustNot(
        tools=keeping_hands((*directive.blocked_tools, *remembered.tools), specs),
        targets=tuple(dict.fromkeys((*directive.blocked_targets, *remembered.targets))),
    )


def _round_of(directive: PlanDirective, must_not: MustNot) -> _Round:
    return _Round(
        number=directive.round,
        must_not=must_not,
        text=directive_text(directive),
        carried=tuple(outcome.subtask_id for outcome in directive.standing),
        must_differ=directive.directive is Directive.BREAK_SYMMETRY,
    )


def _fallback(spec: TaskSpec) -> Criterion:
    """A request from which no criterion follows is still a promise."""
    return Criterion(text=f"The result does what was asked: {spec.intent}", mode=Mode.PLAUSIBLE)


def _request(spec: TaskSpec) -> str:
    limits = [
        f"Only within: {spec.constraints.scope}" if spec.constraints.scope else "",
        "Answer in Chinese." if spec.language == "zh" else "",
    ]
    return "\n".join([spec.intent, *filter(None, limits)])


def _context(task: _Task, *, alone: bool) -> str:
    """What every executor needs to know beyond its intent: what is there, and the whole of which it is a part."""
    around = task.surroundings
    parts = [f"Files here:\n{around.listing}" if around.listing else ""]
    parts += [f"{name} cannot be used; use {place} instead." for name, place in around.found_elsewhere]
    whole = _request(task.spec)
    if not alone:
        parts.append(f"This is a part of: {whole}")
    elif whole != task.spec.intent:
        parts.append(whole.removeprefix(task.spec.intent).strip())
    return "\n\n".join(filter(None, parts))
