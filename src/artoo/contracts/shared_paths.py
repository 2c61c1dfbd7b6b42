"""Find paths that several subtasks changed at the same time in one shared workspace."""

from __future__ import annotations

from collections.abc import Iterable

from artoo.contracts.execution import SubTaskOutcome
from artoo.contracts.plan import SharedPath


def shared_paths(outcomes: Iterable[SubTaskOutcome]) -> tuple[SharedPath, ...]:
    """Return the paths that at least two of these subtasks certainly changed, in path order.

    A change is certain if no call or process of another subtask ran during its call (`ToolCall.overlapped`).
    """
    changed_by: dict[str, dict[str, None]] = {}
    for outcome in outcomes:
        for call in outcome.tool_calls:
            for path in () if call.overlapped else call.changes:
                changed_by.setdefault(path, {})[outcome.subtask_id] = None
    shared = ((path, tuple(ids)) for path, ids in sorted(changed_by.items()) if len(ids) > 1)
    return tuple(SharedPath(path=path, subtasks=ids) for path, ids in shared)
