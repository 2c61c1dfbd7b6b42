"""R3, the plant of the fast loop: one subtask, one tool call at a time. It never judges itself."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import ModelAnswerInvalid
from artoo.contracts.execution import (
    CallStatus,
    CorrectionSignal,
    ExecutionResult,
    ToolCall,
    ToolCalled,
    ToolStarted,
)
from artoo.contracts.plan import Glance, SubTask
from artoo.contracts.settling import ApplyMode, ChangeClass
from artoo.loops.asking import Asker
from artoo.loops.fast.record import Key, Record, room_for_record, today_is
from artoo.loops.fast.step import ANSWER, CANNOT, ExecutorStep, step_contract
from artoo.loops.heuristics import Heuristics
from artoo.loops.prepared import beforehand, prepared
from artoo.loops.role import listen
from artoo.loops.tool_text import arguments_for, beside, other_language, program_in, prohibitions, tool_segments
from artoo.ports.bus import Port
from artoo.ports.surroundings import LastingSurroundings
from artoo.ports.tools import Departure, Ticket, Toolbox, ToolSpec
from artoo.ports.waiting import under_limit
from artoo.prompts.segments import Segment

_STEP_TOKENS = 4_000
_SMALL_STEP_TOKENS = 700
_MOST_REPEATS = 2
"""Repeated calls of one attempt that are answered from the record, before the attempt ends."""

_ONE_STEP = "Only the first step of your last answer was taken; {others} more stood in it. Give one at a time."

_NO_ARGUMENT = "Not taken, for {tool} has no such argument: {names}."

Status = Literal["completed", "cannot", "uncertain", "failed"]


@dataclass(frozen=True, slots=True)
class ExecutorLimits:
    """Steps of one attempt, and seconds of all attempts together: with model calls, without questions to a person.

    Judging between the attempts does not count.
    """

    steps: int = 8
    seconds: float = 1_500.0


@dataclass(slots=True)
class _Work:
    """The subtask under way. `first` is where this attempt begins in the record; `listing` and `guide` are of
    now, `named` the part of the first listing about files that are named, `waits` what it says of changes that wait
    for the person; `said`: the last attempt's own words;
    `circled`: one went round in circles; `small`: the model is.
    """

    subtask: SubTask
    listing: str
    named: str
    guide: str
    record: Record
    attempt: int = 1
    first: int = 0
    repeats: int = 0
    circled: bool = False
    today: str = ""
    note: str = ""
    said: str = ""
    stale: bool = False
    waits: str = ""
    small: bool = False
    glance: Glance | None = None

    def result(
        self, status: Status, output: str, *, put_out_by: int | None = None, told: ExecutorStep | None = None
    ) -> ExecutionResult:
        """`put_out_by`: the number of the call whose output this is, word for word."""
        self.said = told.words if told is not None else ""
        sources = told.sources if told is not None else ()
        return ExecutionResult(
            subtask_id=self.subtask.subtask_id,
            attempt=self.attempt,
            status=status,
            output=output,
            sources=sources if put_out_by is None else (put_out_by,),
            failures=told.failures if told is not None else (),
            verbatim=put_out_by is not None,
            tool_calls=tuple(self.record.calls),
            attempt_from=self.first,
            small_model=self.small,
            glance=self.glance,
        )

    def goes_round(self, call: ToolCall) -> bool:
        """Whether going on is waste: a second act was not allowed, or a call is made again; what went well may be
        asked for more often, and what a small model asks for, until it has done so once for nothing."""
        withheld = [one for one in self.record.calls if one.withheld_by is not None]
        if call.withheld_by is not None and len(withheld) + self.repeats > 1:
            return True
        hopeful = call.status is CallStatus.OK or (self.small and call.status is not CallStatus.REFUSED)
        return self.repeats > (_MOST_REPEATS if hopeful and not self.circled else 0)

    def gone_round(self, call: ToolCall) -> ExecutionResult:
        """The end of an attempt that goes round in circles, with what a tool said that refused the call."""
        self.circled = True
        stuck = all(one.status is CallStatus.REFUSED for one in self.record.calls[self.first :])
        said = call.reason if call.status is CallStatus.REFUSED and call.reason else "it was made again and again"
        return self.result("uncertain", said).model_copy(update={"stuck": stuck})


@dataclass(slots=True, eq=False)
class Executor:
    """Lives for one subtask: answers the SubTask, and each CorrectionSignal, with an ExecutionResult.

    `surroundings` look at the task's workspace; paths are shown from `project`. `unasked`: what may take effect
    unasked after the task.
    """

    port: Port
    asker: Asker
    toolbox: Toolbox
    limits: ExecutorLimits
    surroundings: LastingSurroundings
    heuristics: Heuristics = field(default_factory=Heuristics)
    project: str = ""
    unasked: frozenset[ChangeClass] = ApplyMode.NEW.unasked
    _work: _Work | None = field(default=None, init=False)
    _interrupted: int = field(default=0, init=False)
    _acts: int = field(default=0, init=False)
    _seconds: float = field(init=False)
    _seconds_left: float = field(init=False)

    def __post_init__(self) -> None:
        self._seconds = self._seconds_left = self.limits.seconds

    @property
    def calls(self) -> int:
        """How many tool calls it has made, in all attempts."""
        return len(self._work.record.calls) if self._work is not None else 0

    async def run(self) -> None:
        """Works until the port closes."""
        await listen(self.port, self._handle)

    async def _handle(self, envelope: Envelope) -> None:
        match envelope.payload:
            case SubTask() as subtask:
                record = Record(self.project)
                if subtask.deadline is not None:  # by the time of the message: a replay comes to the same
                    self._seconds = max(0.0, min(self._seconds, (subtask.deadline - envelope.at).total_seconds()))
                    self._seconds_left = self._seconds
                sight = (subtask.surroundings, subtask.named_files, subtask.guide)
                small = self.asker.known.small
                today = "" if small else today_is(envelope.at)
                self._work = _Work(subtask, *sight, record, stale=subtask.begun, today=today, small=small)
            case CorrectionSignal() as correction if self._work is not None:
                self._work.attempt = correction.attempt + 1
                self._work.first = len(self._work.record.calls)
                self._work.repeats = 0
                self._work.record.correct(correction, self._work.said)
            case _:
                return
        result = await self._bounded(self._work, envelope)
        self.port.publish(result, cause=envelope)

    async def _bounded(self, work: _Work, cause: Envelope) -> ExecutionResult:
        try:
            async with asyncio.timeout(self._seconds_left) as limit:
                try:
                    with under_limit(limit):
                        return await self._attempt(work, cause)
                finally:
                    self._seconds_left = _left_of(limit)
        except TimeoutError:
            self._add_interrupted(work, cause)
            reason = f"timeout: the subtask's attempts took more than {self._seconds:g} s"
            return work.result("failed", reason).model_copy(update={"infrastructure": reason})
        except ModelAnswerInvalid as error:
            return work.result("uncertain", f"no usable step from the model: {error}")

    def _add_interrupted(self, work: _Work, cause: Envelope) -> None:
        """A call that the time limit cut off could not return its record; it happened all the same."""
        for call in self.toolbox.interrupted[self._interrupted :]:
            work.record.add(call)
            self._publish_call(work, call, cause)
        self._interrupted = len(self.toolbox.interrupted)

    async def _attempt(self, work: _Work, cause: Envelope) -> ExecutionResult:
        specs = self.toolbox.specs
        by_name = {spec.name: spec for spec in specs}
        for _ in range(self.limits.steps):
            step = await self._ask(work, specs, cause)
            if step.tool == ANSWER:
                return work.result("completed" if step.words else "uncertain", step.words, told=step)
            if step.tool == CANNOT:
                return work.result("cannot", step.words, told=step)
            number = await self._made(work, by_name[step.tool], step, cause)
            call = work.record.calls[number - 1]
            several = step.others and not work.small
            if several:  # its output alone cannot be the whole answer
                work.note = "\n".join(filter(None, (work.note, _ONE_STEP.format(others=step.others))))
            answer = work.record.answer_of(call) if step.is_final and not several else ""
            if answer:
                return work.result("completed", answer, put_out_by=number)
            if work.goes_round(call):
                return work.gone_round(call)
            if step.is_final and call.withheld_by is not None:
                return work.result("uncertain", call.reason or "")  # a no is not worked around
            if step.is_final and self.asker.known.small and self.heuristics.other_language:
                if work.repeats and call.says_no and (said := call.output.strip()):
                    return work.result("cannot", said)  # it came back to a program that says why
                how = "printed nothing" if call.status is CallStatus.OK else "did not end well"
                return work.result("uncertain", f"the program {how}")
        return work.result("uncertain", "no answer within the steps that a subtask has")

    async def _made(self, work: _Work, spec: ToolSpec, step: ExecutorStep, cause: Envelope) -> int:
        """The number of the call that the step asks for: an earlier one, when nothing has changed since."""
        arguments = arguments_for(spec, step.input, step.block, step.more)
        key: Key = (step.tool, *map(str, arguments.items()))
        number = work.record.same(key)
        if number is not None:
            work.repeats += 1
            work.note = f"That is call [{number}]; nothing has changed since, so it was not made again."
            return number
        self._acts += 1
        if extra := beside(spec, arguments):
            arguments = {name: arguments[name] for name in arguments if name not in extra}
            work.note = _NO_ARGUMENT.format(tool=spec.name, names=", ".join(extra))
        call = await self.toolbox.call(spec.name, arguments, self._ticket(work, step.tool, cause))
        work.record.add(call, key)
        work.stale = work.stale or call.changed_something
        self._publish_call(work, call, cause)
        return len(work.record.calls)

    def _publish_call(self, work: _Work, call: ToolCall, cause: Envelope) -> None:
        own, act = work.subtask.subtask_id, self._act(work)
        self.port.publish(ToolCalled(subtask_id=own, attempt=work.attempt, call=call, act=act), cause=cause)

    def _act(self, work: _Work) -> str:
        """The call under way: numbered over all attempts, the same when the task is run again from its log."""
        return f"{work.subtask.subtask_id}/{self._acts}"

    def _ticket(self, work: _Work, tool: str, cause: Envelope) -> Ticket:
        act = self._act(work)

        def announce(departure: Departure) -> None:
            started = ToolStarted(
                subtask_id=work.subtask.subtask_id,
                attempt=work.attempt,
                act=act,
                tool=tool,
                input=departure.input,
                effects=departure.effects,
                digest=departure.digest,
            )
            self.port.publish(started, cause=cause)

        return Ticket(act, announce)

    async def _ask(self, work: _Work, specs: tuple[ToolSpec, ...], cause: Envelope) -> ExecutorStep:
        await self._hear_news(work)
        small = self.asker.known.small
        simple = small and self.heuristics.programs
        listing = await self._listing(work)
        segments = {
            **tool_segments(specs, programs_apart=simple),
            Segment.CONSTRAINTS: prohibitions(work.subtask.must_not),
            Segment.PROJECT_GUIDE: work.guide,
            Segment.CAUTIONS: self._caution(work, specs),
            Segment.ENVIRONMENT: work.today,
            Segment.SURROUNDINGS: listing,
            Segment.CONTEXT: work.subtask.context,
            Segment.SUBTASK: _assignment(work.subtask),
            Segment.EVIDENCE: work.record.text(room_for_record(self.asker.known.window, small=small)),
            Segment.CLOSING: self._closing(work, specs),
        }
        return await self.asker.ask(
            "ExecutorStep",
            step_contract(specs),
            segments,
            cause=cause,
            max_tokens=_SMALL_STEP_TOKENS if small else _STEP_TOKENS,
            variant=work.attempt - 1,
            body_field="body",
            simple=simple,
            images=work.subtask.images,
        )

    async def _hear_news(self, work: _Work) -> None:
        """Look at the user's files as they are before this turn, and keep in the record what happened meanwhile."""
        news = await self.surroundings.news()
        if news:
            work.record.remark(news)
            work.stale = True

    async def _listing(self, work: _Work) -> str:
        """What is on disk, looked at again when a call has changed something, or somebody may have meanwhile."""
        if not self.heuristics.listing:
            return ""
        if work.stale or await self.surroundings.went_on():
            work.stale = False
            seen = await self.surroundings.look(work.subtask.intent)
            if not work.record.calls:
                work.glance = Glance(surroundings=seen.listing, heads=seen.heads)
            here = "your subtask" if seen.earlier else "this task"
            done = {"this task before your subtask": seen.earlier, f"{here} so far": seen.changed}
            known = (f"Done in {where}:\n{what}" for where, what in done.items() if what)
            work.guide, work.named, work.waits = seen.guide, "", prepared(seen.classes, self.unasked)
            work.listing = "\n".join(filter(None, (seen.listing, *known)))
        brief = self.asker.known.small and self.heuristics.brief and work.attempt == 1
        return (work.named if brief else "") or work.listing

    def _caution(self, work: _Work, specs: tuple[ToolSpec, ...]) -> str:
        """What waits for the person; before the first change what would, if the suggested tool can do that."""
        only_reads = any(spec.name == work.subtask.preferred_tool and not spec.writes for spec in specs)
        changed = any(call.changed_something for call in work.record.calls)
        idle = self.asker.known.small or changed or only_reads
        return work.waits or ("" if idle else beforehand(self.unasked))

    def _closing(self, work: _Work, specs: tuple[ToolSpec, ...]) -> str:
        note, work.note, way = work.note, "", ""
        if self.asker.known.small and self.heuristics.other_language and work.attempt > 1:
            calls = work.record.calls
            other = other_language(specs, calls[-1].tool if calls else "shell")
            way = program_in(other) if other else ""
        return "\n".join(filter(None, (note, way)))


def _left_of(limit: asyncio.Timeout) -> float:
    """Seconds until a limit expires; pauses have moved it already."""
    until = limit.when()
    return max(0.0, until - asyncio.get_running_loop().time()) if until is not None else 0.0


def _assignment(subtask: SubTask) -> str:
    """The intent, and all that the result is held to; only the intent itself is not said twice."""
    told = (criterion.text for criterion in subtask.success_criteria if criterion.text != subtask.intent)
    criteria = "\n".join(f"- {text}" for text in told)
    preferred = f"\nSuggested tool: {subtask.preferred_tool}" if subtask.preferred_tool else ""
    return f"{subtask.intent}{preferred}" + (f"\nIt is done when:\n{criteria}" if criteria else "")
