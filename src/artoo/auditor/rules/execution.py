"""R3: what it says it did is what the records of its calls say, and it did nothing that it must not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from artoo.auditor.notes import SubTaskNotes, TaskNotes, unexpected
from artoo.auditor.rules.rule import Rule, on
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall, ToolCalled
from artoo.contracts.roles import Role

_REPEATS = 5
"""The same call so often in one subtask is a loop that the executor's own guard has not stopped."""

_WORD = re.compile(r"\w{3,}")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|[nrtbf\"/\\])")
_WORDS_LISTED = 5


def _recorded(task: TaskNotes, result: ExecutionResult) -> Sequence[ToolCall]:
    return task.of(result.subtask_id).calls.get(result.attempt, ())


def _unrecorded(task: TaskNotes, result: ExecutionResult) -> list[ToolCall]:
    recorded = _recorded(task, result)
    if result.attempt_calls == tuple(recorded):
        return []
    return [call for call in result.attempt_calls if call not in recorded]


def _same_act(one: ToolCall, other: ToolCall) -> bool:
    return (one.tool, one.input) == (other.tool, other.input)


def _owner(task: TaskNotes, call: ToolCall, own: str) -> str | None:
    """The other subtask in whose records a call stands."""
    for key, notes in task.subtasks.items():
        if key != own and any(call == known for calls in notes.calls.values() for known in calls):
            return key
    return None


@on(ExecutionResult)
def borrowed_call(task: TaskNotes, result: ExecutionResult, envelope: Envelope) -> Iterator[str]:
    """Evidence from another subtask: a call that was made for something else."""
    for call in _unrecorded(task, result):
        owner = _owner(task, call, result.subtask_id)
        if owner is not None:
            yield f"the result cites {_named(call)}, a call of subtask {owner}"


@on(ExecutionResult)
def altered_call(task: TaskNotes, result: ExecutionResult, envelope: Envelope) -> Iterator[str]:
    """Evidence that differs from the record of the same call."""
    recorded = _recorded(task, result)
    for call in _unrecorded(task, result):
        original = next((known for known in recorded if _same_act(call, known)), None)
        if original is not None:
            differs = [name for name in ToolCall.model_fields if getattr(call, name) != getattr(original, name)]
            yield f"the result changes {', '.join(differs)} of {_named(call)}"


@on(ExecutionResult)
def fabricated_call(task: TaskNotes, result: ExecutionResult, envelope: Envelope) -> Iterator[str]:
    """Evidence of which there is no record: a call that was not made in this attempt."""
    recorded = _recorded(task, result)
    for call in _unrecorded(task, result):
        altered = any(_same_act(call, known) for known in recorded)
        if not altered and _owner(task, call, result.subtask_id) is None:
            yield f"the result cites {_named(call)}, which was not called in attempt {result.attempt}"


@on(ExecutionResult)
def missing_call(task: TaskNotes, result: ExecutionResult, envelope: Envelope) -> Iterator[str]:
    """A call that was made and is left out of the evidence."""
    for call in _recorded(task, result):
        if not any(_same_act(call, cited) for cited in result.attempt_calls):
            yield f"the result leaves out {_named(call)}, which ended as {call.status}"


@on(ExecutionResult)
def reordered_calls(task: TaskNotes, result: ExecutionResult, envelope: Envelope) -> Iterator[str]:
    """The calls of the evidence in another order or number than they were made."""
    recorded = _recorded(task, result)
    if result.attempt_calls == tuple(recorded) or _unrecorded(task, result):
        return
    if all(call in result.attempt_calls for call in recorded):
        yield f"{len(recorded)} calls were made; the result cites {len(result.attempt_calls)}, or in another order"


@on(ExecutionResult)
def earlier_calls_differ(task: TaskNotes, result: ExecutionResult, envelope: Envelope) -> Iterator[str]:
    """Calls of earlier attempts that are not those which these attempts made."""
    before = result.tool_calls[: result.attempt_from]
    made = task.of(result.subtask_id).every_call()
    if before and before != made:
        yield f"the result begins with {len(before)} earlier calls; {len(made)} were made, or others"


@on(ExecutionResult)
def not_word_for_word(task: TaskNotes, result: ExecutionResult, envelope: Envelope) -> Iterator[str]:
    """An output that is called what a call put out, word for word, and is something else."""
    if result.status != "completed" or result.put_out_by is None:
        return
    call = result.tool_calls[result.put_out_by - 1]
    if result.output.strip() != call.output.strip() and not call.changes:
        yield f"the output is called that of {_named(call)}, and is another"


@on(ExecutionResult)
def wrong_attempt(task: TaskNotes, result: ExecutionResult, envelope: Envelope) -> Iterator[str]:
    """An attempt that nobody asked for: one more result than corrections."""
    notes = task.of(result.subtask_id)
    due = len(notes.results) + 1
    if result.attempt != due or due > len(notes.corrections) + 1:
        corrections = len(notes.corrections)
        yield f"a result of attempt {result.attempt} after {due - 1} results and {corrections} corrections"


@on(ExecutionResult)
def unassigned_result(task: TaskNotes, result: ExecutionResult, envelope: Envelope) -> Iterator[str]:
    """A result of a subtask that was never dispatched, or that has its outcome already."""
    yield from unexpected(task, result.subtask_id)


@on(ExecutionResult)
def output_from_nowhere(task: TaskNotes, result: ExecutionResult, envelope: Envelope) -> Iterator[str]:
    """An output that neither a tool nor the executor's model has said."""
    notes = task.of(result.subtask_id)
    if result.status != "completed" or not result.output or not notes.steps:
        return
    words = set(_WORD.findall(result.output.casefold()))
    unsaid = words - _said(notes, result.tool_calls)
    if unsaid:
        some = ", ".join(sorted(unsaid)[:_WORDS_LISTED])
        yield f"the output says {some}, which no tool and no model call of the subtask said"


def _said(notes: SubTaskNotes, calls: Sequence[ToolCall]) -> set[str]:
    texts = [text for call in calls for text in (call.output, call.error_output, call.reason or "", *call.changes)]
    answers = [part for said in notes.said for part in (said, _unescaped(said))]
    return set(_WORD.findall("\n".join((*texts, *answers, "written")).casefold()))


def _unescaped(text: str) -> str:
    """The text of the strings of a JSON answer, well enough to find its words."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else " ", text)


@on(ToolCalled)
def call_without_step(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """A tool call that no step of the executor's model led to."""
    notes = task.of(called.subtask_id)
    made = sum(map(len, notes.calls.values()))
    if notes.subtask is None:
        yield f"{_named(called.call)} was called for a subtask that was never dispatched"
    elif made >= notes.steps:
        yield f"{_named(called.call)} is call {made + 1} after {notes.steps} steps of the model"


@on(ToolCalled)
def call_after_result(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """A call that is recorded after the result of its attempt, or for an attempt that is not due."""
    notes = task.of(called.subtask_id)
    if called.attempt != len(notes.results) + 1:
        yield f"{_named(called.call)} is recorded for attempt {called.attempt} after {len(notes.results)} results"


@on(ToolCalled)
def blocked_tool_used(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """A tool that the subtask must not use."""
    subtask, call = task.of(called.subtask_id).subtask, called.call
    if subtask is None or call.status is CallStatus.REFUSED:
        return
    for identity in dict.fromkeys((call.tool, *call.identity)):
        if identity in subtask.must_not.tools:
            yield f"{identity} is blocked in this subtask, and ran"


@on(ToolCalled)
def blocked_target_used(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """A target that the subtask must not use with this tool, before it has changed anything."""
    notes, call = task.of(called.subtask_id), called.call
    subtask = notes.subtask
    if subtask is None or call.status is CallStatus.REFUSED or notes.changed_before(call):
        return
    mine = (call.tool, *call.identity)
    for identity, target in subtask.must_not.targets:
        if identity in mine and target == call.target:
            yield f"{target!r} is blocked for {identity} in this subtask, and was used"


@on(ToolCalled)
def dropped_but_ok(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """A call whose changes were withheld and that counts as done all the same."""
    if called.call.dropped and called.call.status is CallStatus.OK:
        yield f"{_named(called.call)} is recorded as ok, though its changes were withheld"


@on(ToolCalled)
def status_contradicts_exit(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """A command that ended with an exit code of failure and is recorded as ok. 1 is how a search says "nothing"."""
    call = called.call
    if call.status is CallStatus.OK and call.exit_code not in (None, 0, 1):
        yield f"{_named(call)} is recorded as ok with exit code {call.exit_code}"


@on(ToolCalled, nature="anomaly")
def stuck_loop(task: TaskNotes, called: ToolCalled, envelope: Envelope) -> Iterator[str]:
    """The same call over and over in one subtask."""
    key = (called.call.tool, called.call.input)
    if task.of(called.subtask_id).repeated[key] + 1 == _REPEATS:
        yield f"{_named(called.call)} was made {_REPEATS} times in one subtask"


@on(ModelCalled)
def wrong_contract(task: TaskNotes, called: ModelCalled, envelope: Envelope) -> Iterator[str]:
    """A role that asks a model to do another role's work, such as an executor that judges itself.

    The validator may have a second way written: that is a step, in another world.
    """
    owner = _CONTRACT_OF.get(called.contract)
    second_way = called.contract == "ExecutorStep" and envelope.sender is Role.AGENT_VALIDATOR
    if owner is not None and envelope.sender.value != owner and not second_way:
        yield f"the {envelope.sender} asked a model for a {called.contract}, which is the {owner}'s"


_CONTRACT_OF = {
    "TaskSpec": "perceiver",
    "Plan": "planner",
    "ExecutorStep": "executor",
    "ValidationReport": "agent_validator",
    "MergeReport": "meta_validator",
    "FailureReport": "solver",
    "SOPDraft": "dreamer",
}


def _named(call: ToolCall) -> str:
    return f"{call.tool} {' '.join(call.input.split())[:60]!r}"


RULES: tuple[Rule, ...] = (
    borrowed_call,
    altered_call,
    fabricated_call,
    missing_call,
    reordered_calls,
    earlier_calls_differ,
    not_word_for_word,
    wrong_attempt,
    unassigned_result,
    output_from_nowhere,
    call_without_step,
    call_after_result,
    blocked_tool_used,
    blocked_target_used,
    dropped_but_ok,
    status_contradicts_exit,
    stuck_loop,
    wrong_contract,
)
