"""R3, the plant of the fast loop: one subtask, one tool call at a time. It never judges itself."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from artoo.contracts.criteria import OutputMatches, ToolSucceeded
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
from artoo.contracts.plan import SubTask
from artoo.loops.asking import Asker
from artoo.loops.fast.step import ANSWER, ExecutorStep, step_contract
from artoo.loops.role import listen
from artoo.loops.tool_text import arguments_for, describe_tools, prohibitions
from artoo.ports.bus import Port
from artoo.ports.tools import Departure, Ticket, Toolbox, ToolSpec
from artoo.ports.waiting import under_limit
from artoo.prompts.segments import Segment

_SHOWN_CALLS = 6
_SHOWN_OUTPUT = 1_200
_STEP_TOKENS = 800
_REPEATED = "this exact call was made before; do it another way"
"""At temperature 0 a small model makes it again, so the tool is not offered again in this attempt."""

_SELF_EVIDENT = (OutputMatches, ToolSucceeded)
"""Checks that follow from any good answer; naming them leads a small model astray."""


@dataclass(frozen=True, slots=True)
class ExecutorLimits:
    """Steps of one attempt, and seconds of all attempts together: with model calls, without questions to a person.

    Judging between the attempts does not count.
    """

    steps: int = 8
    seconds: float = 240.0


@dataclass(slots=True)
class _Attempt:
    number: int
    correction: CorrectionSignal | None = None
    calls: list[ToolCall] = field(default_factory=list[ToolCall])


class Executor:
    """Lives for one subtask: answers the SubTask, and each CorrectionSignal, with an ExecutionResult."""

    def __init__(self, port: Port, asker: Asker, toolbox: Toolbox, limits: ExecutorLimits) -> None:
        self._port = port
        self._asker = asker
        self._toolbox = toolbox
        self._limits = limits
        self._subtask: SubTask | None = None
        self._seen: set[tuple[str, str, str]] = set()
        self._interrupted = 0
        self._acts = 0
        self._seconds_left = limits.seconds

    async def run(self) -> None:
        """Works until the port closes."""
        await listen(self._port, self._handle)

    async def _handle(self, envelope: Envelope) -> None:
        match envelope.payload:
            case SubTask() as subtask:
                self._subtask = subtask
                attempt = _Attempt(number=1)
            case CorrectionSignal() as correction:
                attempt = _Attempt(number=correction.attempt + 1, correction=correction)
            case _:
                return
        if self._subtask is not None:
            result = await self._bounded(self._subtask, attempt, envelope)
            if self._asker.small:
                result = result.model_copy(update={"small_model": True})
            self._port.publish(result, cause=envelope)

    async def _bounded(self, subtask: SubTask, attempt: _Attempt, cause: Envelope) -> ExecutionResult:
        try:
            async with asyncio.timeout(self._seconds_left) as limit:
                try:
                    with under_limit(limit):
                        return await self._attempt(subtask, attempt, cause)
                finally:
                    self._seconds_left = _left_of(limit)
        except TimeoutError:
            self._add_interrupted(subtask, attempt, cause)
            reason = f"timeout: the subtask's attempts took more than {self._limits.seconds:g} s"
            return _result(subtask, attempt, "failed", reason, infrastructure=reason)
        except ModelAnswerInvalid as error:
            return _result(subtask, attempt, "uncertain", f"no usable step from the model: {error}")

    def _add_interrupted(self, subtask: SubTask, attempt: _Attempt, cause: Envelope) -> None:
        """A call that the time limit cut off could not return its record; it happened all the same."""
        for call in self._toolbox.interrupted[self._interrupted :]:
            attempt.calls.append(call)
            self._publish_call(subtask, attempt, call, cause)
        self._interrupted = len(self._toolbox.interrupted)

    def _publish_call(self, subtask: SubTask, attempt: _Attempt, call: ToolCall, cause: Envelope) -> None:
        self._port.publish(
            ToolCalled(subtask_id=subtask.subtask_id, attempt=attempt.number, call=call, act=self._act(subtask)),
            cause=cause,
        )

    async def _attempt(self, subtask: SubTask, attempt: _Attempt, cause: Envelope) -> ExecutionResult:
        specs = self._open_tools(attempt.correction)
        by_name = {spec.name: spec for spec in specs}
        for number in range(self._limits.steps):
            step = await self._ask(subtask, attempt, specs, cause, number)
            if step.tool == ANSWER:
                return _answered(subtask, attempt, step)
            self._acts += 1
            call = await self._call(by_name[step.tool], step, self._ticket(subtask, attempt, step.tool, cause))
            attempt.calls.append(call)
            self._publish_call(subtask, attempt, call, cause)
            repeated = call.reason == _REPEATED
            specs = tuple(spec for spec in specs if not (repeated and spec.name == step.tool))
            if not specs or (step.is_final and not repeated):
                return _finished(subtask, attempt, call)
        return _result(subtask, attempt, "uncertain", f"no result after {self._limits.steps} steps")

    def _act(self, subtask: SubTask) -> str:
        """The call under way: numbered over all attempts, the same when the task is run again from its log."""
        return f"{subtask.subtask_id}/{self._acts}"

    def _ticket(self, subtask: SubTask, attempt: _Attempt, tool: str, cause: Envelope) -> Ticket:
        act = self._act(subtask)

        def announce(departure: Departure) -> None:
            self._port.publish(
                ToolStarted(
                    subtask_id=subtask.subtask_id,
                    attempt=attempt.number,
                    act=act,
                    tool=tool,
                    input=departure.input,
                    effects=departure.effects,
                    digest=departure.digest,
                ),
                cause=cause,
            )

        return Ticket(act, announce)

    def _open_tools(self, correction: CorrectionSignal | None) -> tuple[ToolSpec, ...]:
        """After a wrong approach, the tool that failed last is not offered again while another can run code.

        At temperature 0 a small model repeats its command whatever the correction says.
        """
        specs = self._toolbox.specs
        if correction is None:
            return specs
        if correction.by_program:
            specs = tuple(spec for spec in specs if spec.languages) or specs
        left = tuple(spec for spec in specs if spec.name != correction.switch_from)
        return left if any(spec.languages for spec in left) else specs

    async def _ask(
        self, subtask: SubTask, attempt: _Attempt, specs: tuple[ToolSpec, ...], cause: Envelope, number: int
    ) -> ExecutorStep:
        segments = {
            Segment.TOOLS: describe_tools(specs),
            Segment.CONSTRAINTS: prohibitions(subtask.must_not),
            Segment.CONTEXT: subtask.context,
            Segment.SUBTASK: _assignment(subtask),
            Segment.EVIDENCE: _record(attempt.calls),
            Segment.CLOSING: _correction(attempt.correction) if number == 0 else "",
        }
        contract = step_contract(specs)
        return await self._asker.ask(
            "ExecutorStep",
            contract.schema,
            segments,
            cause=cause,
            max_tokens=_STEP_TOKENS,
            variant=attempt.number - 1,
            body_field="body",
            forms=contract.forms,
        )

    async def _call(self, spec: ToolSpec, step: ExecutorStep, ticket: Ticket) -> ToolCall:
        key = (step.tool, step.input.strip(), step.body.strip())
        if key in self._seen:
            return ToolCall(
                tool=spec.name,
                identity=(spec.name,),
                target=step.input,
                input=(step.body or step.input)[:2_000],
                status=CallStatus.REFUSED,
                reason=_REPEATED,
            )
        self._seen.add(key)
        return await self._toolbox.call(spec.name, arguments_for(spec, step.input, step.body), ticket)


def _left_of(limit: asyncio.Timeout) -> float:
    """Seconds until a limit expires; pauses have moved it already."""
    until = limit.when()
    return max(0.0, until - asyncio.get_running_loop().time()) if until is not None else 0.0


def _answered(subtask: SubTask, attempt: _Attempt, step: ExecutorStep) -> ExecutionResult:
    if step.failure is not None:
        return _result(subtask, attempt, "failed", step.failure)
    if not step.answer:
        return _result(subtask, attempt, "uncertain", "")
    return _result(subtask, attempt, "completed", step.answer)


def _finished(subtask: SubTask, attempt: _Attempt, call: ToolCall) -> ExecutionResult:
    """The result of a call that was announced as final: its output, or what it made, never more."""
    if call.status is not CallStatus.OK:
        return _result(subtask, attempt, "uncertain", call.reason or call.error_output or call.output)
    made = ", ".join(call.changes)
    output = call.output.strip() or (f"written: {made}" if made else "")
    return _result(subtask, attempt, "completed", output)


def _result(
    subtask: SubTask, attempt: _Attempt, status: str, output: str, *, infrastructure: str | None = None
) -> ExecutionResult:
    return ExecutionResult.model_validate(
        {
            "subtask_id": subtask.subtask_id,
            "attempt": attempt.number,
            "status": status,
            "output": output,
            "tool_calls": tuple(attempt.calls),
            "infrastructure": infrastructure,
        }
    )


def _assignment(subtask: SubTask) -> str:
    """The intent, and what the intent itself does not say about the result."""
    told = [criterion for criterion in subtask.success_criteria if not isinstance(criterion.check, _SELF_EVIDENT)]
    criteria = "\n".join(f"- {criterion.text}" for criterion in told)
    preferred = f"\nSuggested tool: {subtask.preferred_tool}" if subtask.preferred_tool else ""
    return f"{subtask.intent}{preferred}" + (f"\nIt is done when:\n{criteria}" if criteria else "")


def _record(calls: list[ToolCall]) -> str:
    shown = calls[-_SHOWN_CALLS:]
    return "\n\n".join(
        f"{call.tool} {call.input[:_SHOWN_OUTPUT]}\n[{call.status}] {_shown(call)}" for call in shown
    )


def _shown(call: ToolCall) -> str:
    text = "\n".join(part for part in (call.output, call.error_output, call.reason) if part)
    half = _SHOWN_OUTPUT // 2
    return text if len(text) <= _SHOWN_OUTPUT else f"{text[:half]}\n[…]\n{text[-half:]}"


def _correction(correction: CorrectionSignal | None) -> str:
    if correction is None:
        return ""
    prior = "\n".join(f"- {line}" for line in correction.prior_tool_calls)
    return f"The last attempt was not accepted: {correction.what_was_wrong}\n{correction.what_to_do}" + (
        f"\nDo not repeat:\n{prior}" if prior else ""
    )
