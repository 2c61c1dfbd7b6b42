"""Script the models: what R2 plans, what R3 does with it, and what R4b writes, given the messages that they get.

R2's mind reads the directive as a message and not its wording; which tools it may use, and what memory prefers, it
reads from its prompt, as a model would.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeVar, cast

from pydantic import BaseModel

from artoo.contracts.conversation import ModelTurn, ToolRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import Usage
from artoo.contracts.execution import CallStatus, SubTaskOutcome, ToolCalled
from artoo.contracts.plan import Plan, SubTask
from artoo.contracts.solution import Directive, OutcomeSummary, PlanDirective, ReplanRequest
from artoo.ports.clock import Clock
from artoo.ports.model import Answer, Conversation, OnText, Question, Spoken
from artoo.ports.tools import ToolSpec
from lab.world import CUT_OFF, PLACES, Job, Part, World, draw, effect, kind_of

T = TypeVar("T", bound=BaseModel)

_TOKEN = re.compile(r"p\d+c\d+")
_KIND = re.compile(r'^- ([\w ]+): "(.*)"$', re.MULTILINE)
_PREFERRED = re.compile(r"^Should prefer:\n((?:- .*\n?)+)", re.MULTILINE)
_ANYTHING = {"text": "something of it is there", "check": {"check": "output_matches", "regex": r"p\d+c\d+"}}


class Told(Enum):
    """The input of R2 when it plans again: the directive with its blocks, or what a baseline tells it."""

    DIRECTIVE = "directive"
    SAME = "same"
    ANEW = "anew"
    NOTES = "notes"
    ERRORS = "errors"
    TREE = "tree"
    SPLIT = "split"
    TRUTH = "truth"


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of how a part is to be done."""

    tool: str
    place: int
    split: bool = False


@dataclass(slots=True)
class Known:
    """The history of one part so far, as R2 can read it in outcomes.

    `called`: tools that were used on it; `half`: those after which one criterion was met. `at_fault`: what the last
    call printed of the world's faults, empty if it succeeded.
    """

    tried: list[Choice] = field(default_factory=list[Choice])
    called: set[str] = field(default_factory=set[str])
    half: set[str] = field(default_factory=set[str])
    at_fault: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """The state after a round: model calls so far, and criteria that are met."""

    calls: int
    met: int


class Minds:
    """The models of one job, with what they have seen. A tap of its bus."""

    def __init__(self, world: World, job: Job, seed: int) -> None:
        self.world, self.job, self.seed = world, job, seed
        self.told = Told.DIRECTIVE
        self.calls = 0
        self.messages = 0
        self.redundant = 0
        self.tool_calls = 0
        self.first_tools: tuple[str, ...] = ()
        self.label = self.kept_as = ""
        self.made: set[str] = set()
        self.rounds: list[Progress] = []
        self._directive: PlanDirective | None = None
        self._subtasks: dict[str, SubTask] = {}
        self._made: dict[str, int] = {}
        self._met_so_far: frozenset[str] = frozenset()
        self._asked = 0
        self._plans = 0
        self._known = {part.name: Known() for part in job.parts}
        self._failed: set[tuple[str, str, str]] = set()
        self._times: dict[tuple[str, str, int, int], int] = {}

    def tap(self, envelope: Envelope) -> None:
        """Read everything that is said."""
        self.messages += 1
        match envelope.payload:
            case Plan() as plan:
                self.kept_as = plan.label
            case PlanDirective() as directive:
                self._directive, self._asked = directive, 0
            case SubTask() as subtask:
                self._subtasks[subtask.subtask_id] = subtask
            case ToolCalled() as called:
                self._count(called)
            case ReplanRequest() as request:
                self._met_so_far = met_in(request.outcomes)
                self.rounds.append(Progress(self.calls, len(met_in(request.outcomes))))
            case OutcomeSummary() as summary:
                self.rounds.append(Progress(self.calls, len(met_in(summary.outcomes))))
            case _:
                return

    def _count(self, called: ToolCalled) -> None:
        """Count a step as redundant when the same part, tool and place were tried before, in vain."""
        call, self.tool_calls = called.call, self.tool_calls + 1
        use = (self._subtasks[called.subtask_id].intent.split()[1], call.tool, call.target)
        self.redundant += use in self._failed
        self._failed.add(use)
        known = self._known[use[0]]
        known.called.add(call.tool)
        known.at_fault = call.error_output or call.reason or ""
        if _TOKEN.search(call.output):
            known.half.add(call.tool)

    def spent(self) -> bool:
        """True if some part is unmet after every tool was used on it: the stop that all arms share."""
        standing = self._met_so_far
        unmet = [part for part in self.job.parts if not standing.issuperset(part.criteria)]
        return any(self._known[part.name].called.issuperset(self.world.names) for part in unmet)

    # --- R2 -------------------------------------------------------------------------------------------------

    def plan(self, question: Question[T]) -> dict[str, object]:
        """Return a plan of what is missing."""
        tools = list(_offered(self.world, question))
        standing = self._directive.standing if self._directive is not None else ()
        met = met_in(standing)
        preferred = [name for name in _preferred(question.user) if name in tools]
        subtasks: list[dict[str, object]] = []
        for part in self.job.parts:
            needed = [criterion for criterion in part.criteria if criterion not in met]
            if needed and tools:
                choice = self._choice(part, tools, preferred)
                self._known[part.name].tried.append(choice)
                whole = len(needed) == len(part.criteria) and not choice.split
                pieces = [needed] if whole else [[criterion] for criterion in needed]
                subtasks += [self._subtask(part, choice, piece) for piece in pieces]
        if self._directive is None and not self._asked:
            self.first_tools = tuple(self._known[part.name].tried[0].tool for part in self.job.parts)
            self.label = self._label(question.user)
        self._asked += 1
        self._plans += 1
        whole_criteria = [_ANYTHING] if len(self.job.parts) > 1 else []
        return {"kind": self.label, "subtasks": subtasks, "task_criteria": whole_criteria}

    def _label(self, user: str) -> str:
        """Return a known label if a request that means the same is shown; now and then a wrong one, or none.

        Nothing: artoo coins one from the request. Without `meaning`, no two requests mean the same.
        """
        key, shown = (self.seed, self.job.name, "label"), _KIND.findall(user)
        careless = draw(*key, "careless") >= self.world.heed
        fitting = [label for label, text in shown if self.job.means and _meaning(text) == self.job.means]
        if fitting:
            return "" if careless else fitting[0]
        return shown[0][0] if shown and careless else ""

    def _subtask(self, part: Part, choice: Choice, piece: list[str]) -> dict[str, object]:
        place = self.job.place(part, choice.place)
        number = self.job.parts.index(part) + 1
        return {
            "sequence": number if self.job.chained else 1,
            "intent": f"do {part.name} with {choice.tool} on {place} for {' and '.join(piece)}",
            "tool": choice.tool,
            "success_criteria": [
                {"text": name, "check": {"check": "output_matches", "regex": rf"\b{name}\b"}} for name in piece
            ],
        }

    def _choice(self, part: Part, tools: list[str], preferred: list[str]) -> Choice:
        """Return what R2 would do about a part, of the tools that it may use."""
        key = (self.seed, self.job.name, part.name, self._plans)
        known = self._known[part.name].tried
        own = [tool for tool in part.guesses if tool in tools]
        if self.told is Told.TRUTH and part.right in tools:
            return Choice(part.right, part.sound.index(True), part.big)
        if not known:
            first = preferred[0] if preferred and draw(*key, "heed") < self.world.heed else own[0]
            return Choice(first, _any_place(*key))
        last = known[-1]
        if self._asked:  # the plan was refused: anything else
            return Choice(self._anew(own, known, *key), _any_place(*key), last.split)
        if self.told is Told.SAME:
            return last
        split = last.split or (self._half_met(part) and draw(*key, "divides") < self.world.heed)
        if self.told in (Told.NOTES, Told.ERRORS, Told.TREE):
            return replace(self._by_notes(own, known, *key), split=split)
        obeys = self.told is Told.DIRECTIVE and draw(*key, "heed") < self.world.heed
        if obeys and self._directive is not None:
            return replace(self._by_directive(self._directive, own, known, *key), split=split)
        split = last.split or self.told is Told.SPLIT
        return Choice(self._anew(own, known, *key), _any_place(*key), split)

    def _half_met(self, part: Part) -> bool:
        """True if the last round met some of a part: then its halves may be done apart."""
        failed = self._directive.failed if self._directive is not None else ()
        verdicts = (verdict for each in failed for verdict in each.criteria_verdicts if verdict.verdict == "pass")
        return any(verdict.criterion in part.criteria for verdict in verdicts)

    def _anew(self, own: list[str], known: list[Choice], *key: object) -> str:
        """Return a fresh plan, made without any feedback: mostly the first idea again."""
        first = known[0].tool if known[0].tool in own else own[0]
        others = [tool for tool in own if tool != first]
        if not others or draw(*key, "stubborn") < self.world.stubborn:
            return first
        return others[int(draw(*key, "other") * len(others))]

    def _by_notes(self, own: list[str], known: list[Choice], *key: object) -> Choice:
        """Leave out what notes say did not work, each as likely as a model heeds it.

        Who reads errors keeps the tool where the world was at fault; a tree goes back to what met a criterion half
        of the time.
        """
        seen, last = self._known[str(key[2])], known[-1]
        reads = self.told is not Told.NOTES and draw(*key, "reads") < self.world.heed
        if reads and seen.at_fault and last.tool in own:
            tried = {one.place for one in known if one.tool == last.tool}
            free = [at for at in range(PLACES) if at not in tried] or list(range(PLACES))
            return Choice(last.tool, free[int(draw(*key, "place") * len(free))])
        best = [tool for tool in own if tool in seen.half] if self.told is Told.TREE else []
        if best and draw(*key, "exploits") < 0.5:
            return Choice(best[0], _any_place(*key))
        noted = {one.tool for one in known[-3:]}
        left = [tool for tool in own if tool not in noted or draw(*key, "ignores", tool) >= self.world.heed]
        places = {one.place for one in known[-3:]}
        free = [at for at in range(PLACES) if at not in places or draw(*key, "keeps", at) >= self.world.heed]
        place = free[int(draw(*key, "place") * len(free))] if free else _any_place(*key)
        return Choice(left[0] if left else own[0], place)

    def _by_directive(self, directive: PlanDirective, own: list[str], known: list[Choice], *key: object) -> Choice:
        last, used = known[-1], {one.tool for one in known}
        suggested = [each.partition(" on ")[0] for each in directive.suggested_alternatives]
        wanted = [tool for tool in dict.fromkeys((*suggested, *own)) if tool in own]
        new = [tool for tool in wanted if tool not in used] or [tool for tool in own if tool != last.tool] or own
        match directive.directive:
            case Directive.CHANGE_PATH | Directive.REFINE if last.tool in own:
                tool = last.tool
            case Directive.BREAK_SYMMETRY:
                kinds = {kind_of(each, self.world.names) for each in used}
                tool = next((one for one in new if kind_of(one, self.world.names) not in kinds), new[0])
            case _:
                tool = new[0]
        part = self.job.parts[[p.name for p in self.job.parts].index(str(key[2]))]
        blocked = {target for identity, target in directive.blocked_targets if identity == tool}
        free = [at for at in range(PLACES) if self.job.place(part, at) not in blocked] or list(range(PLACES))
        if directive.directive is Directive.CHANGE_PATH:
            places = {one.place for one in known if one.tool == tool}
            free = [at for at in free if at not in places] or free
        elif last.place in free:
            free = [last.place]
        return Choice(tool, free[int(draw(*key, "place") * len(free))])

    # --- R3 and R4b -----------------------------------------------------------------------------------------

    def step(self, subtask_id: str, offered: tuple[str, ...]) -> dict[str, object]:
        """Make one call: the plan's tool in the plan's place; after a correction perhaps in another place."""
        subtask = self._subtasks[subtask_id]
        times = self._made[subtask_id] = self._made.get(subtask_id, 0) + 1
        words = subtask.intent.split()
        tool = subtask.preferred_tool if subtask.preferred_tool in offered else (offered or ("cannot",))[0]
        place, key = words[5], (self.seed, self.job.name, words[1], subtask_id, times)
        if times > 1 and draw(*key, "wander") < self.world.wander:
            part = self._part(words[1])
            blocked = {target for identity, target in subtask.must_not.targets if identity == tool}
            others = [each for at in range(PLACES) if (each := self.job.place(part, at)) != place]
            free = [each for each in others if each not in blocked]
            place = free[int(draw(*key, "place") * len(free))] if free else place
        return {"tool": tool, "input": place, "more": {"how": str(times)}, "is_final": True}

    def turn(self, subtask_id: str, offered: Mapping[str, ToolSpec]) -> ModelTurn:
        """Return one step, whose output is the answer."""
        return turn_of(self.step(subtask_id, tuple(offered)), offered, self.calls, delivers=True)

    def use(self, subtask_id: str, name: str, place: str) -> dict[str, object]:
        """Return how a call of a tool in a place ends."""
        part, wanted = self.asked_of(subtask_id)
        number = int(place.rpartition("t")[2])
        done = effect(
            self.world,
            self.job,
            part,
            wanted,
            (name, number, self.times(part, name, number, len(wanted))),
            self.seed,
        )
        if done.fault == CUT_OFF:
            return {"status": CallStatus.TIMEOUT, "reason": CUT_OFF}
        if done.fault:
            return {"status": CallStatus.ERROR, "exit_code": 1, "error_output": done.fault}
        return {"output": " ".join((*done.met, "end of sheet")), "exit_code": 0}

    def asked_of(self, subtask_id: str) -> tuple[Part, tuple[str, ...]]:
        """Return the part that a subtask is about, and the criteria that it is to meet."""
        words = self._subtasks[subtask_id].intent.split()
        return self._part(words[1]), tuple(_TOKEN.findall(" ".join(words[7:])))

    def times(self, part: Part, tool: str, place: int, wanted: int) -> int:
        """Return how often this was done before."""
        key = (part.name, tool, place, wanted)
        before = self._times.get(key, 0)
        self._times[key] = before + 1
        return before

    def _part(self, name: str) -> Part:
        return next(part for part in self.job.parts if part.name == name)


@dataclass(frozen=True, slots=True)
class LabModel:
    """The implementation of `ports.model.Model` for one role. A call takes the world's time to think."""

    minds: Minds
    clock: Clock
    subtask_id: str | None = None

    async def ask(self, question: Question[T]) -> Answer[T]:
        """See Model."""
        minds = self.minds
        minds.calls += 1
        await self.clock.sleep(seconds(minds, minds.world.think, "think", minds.calls))
        value = question.schema.model_validate(self._value(question))
        return Answer(value=value, text="", model="lab", usage=Usage(), duration_ms=0, wire="lab")

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """See Converses. A turn is one call, whose output is delivered."""
        minds = self.minds
        minds.calls += 1
        await self.clock.sleep(seconds(minds, minds.world.think, "think", minds.calls))
        if self.subtask_id is None:
            raise AssertionError("only an executor holds a conversation in the lab")
        offered = {spec.name: spec for spec in conversation.tools if spec.name in minds.world.names}
        turn = minds.turn(self.subtask_id, offered)
        return Spoken(turn=turn, model="lab", usage=Usage(), duration_ms=0, wire="lab")

    def _value(self, question: Question[T]) -> dict[str, object]:
        match question.contract:
            case "Plan":
                return self.minds.plan(question)
            case "ExecutorStep" if self.subtask_id is not None:
                return self.minds.step(self.subtask_id, _offered(self.minds.world, question))
            case "MergeReport":
                found = dict.fromkeys(_TOKEN.findall(question.user.partition("Results:")[2]))
                return {"answer": " ".join(found), "sources": [1]}
            case other:
                raise AssertionError(f"the lab's world has no answer for {other}")


def turn_of(
    step: Mapping[str, object], offered: Mapping[str, ToolSpec], number: int, *, delivers: bool
) -> ModelTurn:
    """Return a mind's step as the model's turn."""
    name, said = str(step["tool"]), str(step["input"])
    spec = offered.get(name)
    if spec is None:
        return ModelTurn(calls=(ToolRequest(id=f"lab-{number}", name="cannot", arguments={"reason": said}),))
    more = cast("Mapping[str, str]", step["more"])
    call = ToolRequest(id=f"lab-{number}", name=name, arguments={spec.parameters[0].name: said, **more})
    delivery = ToolRequest(id=f"lab-{number}-deliver", name="deliver")
    return ModelTurn(calls=(call, delivery) if delivers else (call,))


def seconds(minds: Minds, mean: float, *key: object) -> float:
    """Return how long something takes: the mean, with the world's jitter to both sides."""
    spread = 2 * draw(minds.seed, minds.job.name, *key) - 1 if minds.world.jitter else 0.0
    return mean * (1 + minds.world.jitter * spread)


def met_in(outcomes: tuple[SubTaskOutcome, ...]) -> frozenset[str]:
    """Return the criteria of parts that matched outcomes meet."""
    matched = (each for each in outcomes if each.status == "matched")
    verdicts = (verdict for each in matched for verdict in each.criteria_verdicts if verdict.verdict == "pass")
    return frozenset(verdict.criterion for verdict in verdicts if _TOKEN.fullmatch(verdict.criterion))


def _offered(world: World, question: Question[T]) -> tuple[str, ...]:
    """Return the tools that a prompt lists: each on a line of its own, or all in one line for the planner."""
    text = f"{question.system}\n\n{question.user}"
    line = text.partition("\n\nTools:\n")[2].partition("\n")[0]
    listed = {each.partition("(")[0] for each in line.split(", ")}
    return tuple(name for name in world.names if name in listed or f"\n- {name}: " in text)


def _meaning(text: str) -> str:
    """Return what a request asks for, without the name of its job."""
    return text.rpartition(", ")[0]


def _any_place(*key: object) -> int:
    return int(draw(*key, "place") * PLACES)


def _preferred(user: str) -> list[str]:
    """Return the tools that memory's lines name, in their order."""
    found = _PREFERRED.search(user)
    lines = found[1].splitlines() if found else []
    return list(dict.fromkeys(re.split(r"[\s:]", line[2:], maxsplit=1)[0] for line in lines))
