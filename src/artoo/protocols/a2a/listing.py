"""A page of a foreign agent's tasks, by the protocol's filters."""

from __future__ import annotations

from collections.abc import Sequence

from a2a.types import ListTasksRequest, ListTasksResponse, Task, TaskState
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import InvalidParamsError
from a2a.utils.task import (
    ListTasksCursor,
    decode_list_tasks_cursor,
    encode_list_tasks_cursor,
    validate_page_size,
)


def page_of(tasks: Sequence[Task], params: ListTasksRequest) -> ListTasksResponse:
    """Those that are asked for, the latest change first. Raises InvalidParamsError."""
    size = params.page_size if params.HasField("page_size") else DEFAULT_LIST_TASKS_PAGE_SIZE
    validate_page_size(size)
    if params.tenant:
        raise InvalidParamsError("there are no tenants here: every agent has an address of its own")
    wanted = sorted((task for task in tasks if _fits(task, params)), key=_key, reverse=True)
    after = _after(params) if params.page_token else None
    rest = [task for task in wanted if after is None or _key(task) < after]
    page = rest[:size]
    if not params.include_artifacts:
        for task in page:
            task.ClearField("artifacts")
    more = encode_list_tasks_cursor(_cursor(page[-1])) if len(rest) > size else ""
    return ListTasksResponse(tasks=page, next_page_token=more, page_size=size, total_size=len(wanted))


def _fits(task: Task, params: ListTasksRequest) -> bool:
    if params.status != TaskState.TASK_STATE_UNSPECIFIED and task.status.state != params.status:
        return False
    if not params.HasField("status_timestamp_after"):
        return True
    return task.status.timestamp.ToNanoseconds() >= params.status_timestamp_after.ToNanoseconds()


def _cursor(task: Task) -> ListTasksCursor:
    return ListTasksCursor(timestamp_ns=task.status.timestamp.ToNanoseconds(), task_id=task.id)


def _key(task: Task) -> tuple[bool, int, str]:
    return _cursor(task).sort_key()


def _after(params: ListTasksRequest) -> tuple[bool, int, str]:
    cursor = decode_list_tasks_cursor(params.page_token)
    if cursor is None:
        raise InvalidParamsError("pageToken is none that was given here")
    return cursor.sort_key()
