"""R2, the actuator of the medium loop: turns a TaskSpec, later a PlanDirective, into a plan that may run."""

from __future__ import annotations

from dataclasses import dataclass, field

from artoo.contracts.criteria import Criterion, Mode
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.plan import MustNot, Plan, PlanRefused
from artoo.contracts.request import TaskSpec
from artoo.contracts.solution import Directive, PlanDirective
from artoo.loops.asking import Asker
from artoo.loops.medium.directive_text import directive_text
from artoo.loops.medium.plan_check import PlanRules, fingerprint, objections
from artoo.loops.medium.plan_draft import complete, plan_schema
from artoo.loops.medium.request_criteria import criteria_of
from artoo.loops.role import listen
from artoo.loops.tool_text import describe_tools, prohibitions
from artoo.ports.bus import Port
from artoo.ports.surroundings import Surroundings, SurroundingsSource
from artoo.ports.tools import Tools, ToolSpec
from artoo.prompts.segments import Segment

_PLAN_TOKENS = 1_200


@dataclass(slots=True)
class _Task:
    """What R2 keeps of its task over the rounds: the contract with the person, and the plans already tried."""

    spec: TaskSpec
    surroundings: Surroundings
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
        most_subtasks: int = 8,
    ) -> None:
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
                task = self._task = _Task(spec, await self._surroundings.look(spec.intent))
                task.criteria = criteria_of(spec.intent)
                await self._plan(task, _Round(1, MustNot()), envelope)
            case PlanDirective() as directive if self._task is not None:
                await self._plan(self._task, _round_of(directive), envelope)
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
        whole = None if this.carried else task.spec.intent
        subtasks, criteria = complete(draft, task.criteria, _fallback(task.spec), _context(task), whole)
        rules = PlanRules(
            tools=names,
            must_not=this.must_not,
            tried=tuple(task.tried) if this.must_differ else (),
            most_subtasks=self._most_subtasks,
        )
        drafted = [(each.sequence, each.tool, each.intent) for each in draft.subtasks]
        found = objections(subtasks, criteria, rules, drafted)
        if found:
            return None, found
        task.tried.append(fingerprint(drafted))
        return Plan(
            task_criteria=criteria,
            subtasks=subtasks,
            must_not=this.must_not,
            carried=this.carried,
            round=this.number,
        ), []

    def _segments(
        self, task: _Task, this: _Round, objected: list[str], specs: tuple[ToolSpec, ...]
    ) -> dict[Segment, str]:
        refused = "\n".join(f"- {reason}" for reason in objected)
        return {
            Segment.TOOLS: describe_tools(specs),
            Segment.PROJECT_GUIDE: task.surroundings.guide,
            Segment.CONSTRAINTS: prohibitions(this.must_not),
            Segment.SURROUNDINGS: task.surroundings.listing,
            Segment.TASK: _request(task.spec),
            Segment.DIRECTIVE: this.text,
            Segment.CLOSING: f"Your last plan was refused:\n{refused}\nMend exactly this." if refused else "",
        }


def _round_of(directive: PlanDirective) -> _Round:
    return _Round(
        number=directive.round,
        must_not=MustNot(tools=directive.blocked_tools, targets=directive.blocked_targets),
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


def _context(task: _Task) -> str:
    """What every executor needs to know beyond its intent: the whole request, and what is there."""
    parts = [_request(task.spec)]
    if task.surroundings.listing:
        parts.append(f"Files here:\n{task.surroundings.listing}")
    return "\n\n".join(parts)
