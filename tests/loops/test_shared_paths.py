"""A path that two parallel subtasks changed is stated only where the records prove it."""

from __future__ import annotations

import pytest

from artoo.contracts.execution import CallStatus, SubTaskOutcome, ToolCall
from artoo.contracts.plan import SharedPath
from artoo.loops.medium.dispatcher import shared_paths


def outcome(subtask: str, *calls: ToolCall) -> SubTaskOutcome:
    """Make the outcome of a subtask that made these calls."""
    return SubTaskOutcome(subtask_id=subtask, parent_task_id="task", status="matched", tool_calls=calls)


def call(*changes: str, overlapped: bool = False) -> ToolCall:
    """Make the record of a call that changed these paths."""
    return ToolCall(tool="shell", identity=("shell:sh",), input="", changes=changes, overlapped=overlapped)


def test_paths_of_two_subtasks_are_shared() -> None:
    """Each is named once, in path order, with the subtasks that changed it."""
    one = outcome("one", call("/p/b", "/p/a"), call("/p/b"))
    two = outcome("two", call("/p/b"), call("/p/a"), call("/p/c"))
    shared = (SharedPath(path="/p/a", subtasks=("one", "two")), SharedPath(path="/p/b", subtasks=("one", "two")))
    assert shared_paths((one, two)) == shared


def test_a_change_during_overlapping_calls_proves_nothing() -> None:
    """It may be the other subtask's."""
    assert shared_paths((outcome("one", call("/p/a", overlapped=True)), outcome("two", call("/p/a")))) == ()


@pytest.mark.parametrize("status", list(CallStatus))
def test_a_call_that_still_runs_or_was_refused_has_not_failed(status: CallStatus) -> None:
    """Only a call that ran and ended badly failed."""
    assert status.failed == (status.value in ("error", "timeout", "interrupted"))
