"""A last call that was cut short passes for an end, and the result names no failure."""

from __future__ import annotations

from planting import Stream, StreamFault, changed

from artoo.contracts.execution import CallStatus, SubTaskOutcome, ToolCall


def plant(stream: Stream) -> None:
    outcome: SubTaskOutcome = stream.payload("SubTaskOutcome")
    cut: ToolCall = changed(outcome.tool_calls[-1], status=CallStatus.TIMEOUT, exit_code=None)
    calls = (*outcome.tool_calls[:-1], cut)
    stream.change("ToolCalled", call=cut)
    stream.change("ExecutionResult", tool_calls=calls)
    changed_outcome = changed(outcome, tool_calls=calls)
    stream.put("SubTaskOutcome", payload=changed_outcome)
    stream.change("OutcomeSummary", outcomes=(changed_outcome,))


FAULT = StreamFault("a criterion that a model judges", plant)
