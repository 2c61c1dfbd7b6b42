"""Records of calls, and results that rest on them, as short as tests want them."""

from __future__ import annotations

from artoo.contracts.execution import CallStatus, ExecutionResult, ToolCall


def call(
    status: CallStatus = CallStatus.ERROR, said: str = "", reason: str | None = None, tool: str = "shell"
) -> ToolCall:
    return ToolCall(
        tool=tool, identity=(f"{tool}:x",), input="x", status=status, error_output=said, reason=reason, exit_code=1
    )


def result(*calls: ToolCall, status: str = "completed", **more: object) -> ExecutionResult:
    values = {"subtask_id": "s", "attempt": 1, "status": status, "tool_calls": calls, **more}
    return ExecutionResult.model_validate(values)
