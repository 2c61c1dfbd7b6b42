"""Parse a foreign agent's message (text only) and its queries for pages of tasks.

Messages may contain only text.
"""

from __future__ import annotations

from collections.abc import Sequence

from a2a.types import ListTasksRequest, ListTasksResponse, Message, Role, SendMessageRequest, Task, TaskState
from a2a.utils.constants import DEFAULT_LIST_TASKS_PAGE_SIZE
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError
from a2a.utils.task import (
    ListTasksCursor,
    decode_list_tasks_cursor,
    encode_list_tasks_cursor,
    validate_page_size,
)

from artoo.agents.board.board import LONGEST_TEXT
from artoo.agents.foreign.foreign_tasks import ForeignRequest

LONGEST_ID = 200
MODES = ("text/plain",)
_TAKEN = frozenset({"text/plain", "text/*", "*/*", "text"})


def asked_in(params: SendMessageRequest, agent: str) -> ForeignRequest:
    """Read the task that a message asks for. Raises A2AError, whose text says how to correct the message."""
    message = params.message
    if params.tenant:
        raise InvalidParamsError("there are no tenants here: every agent has an address of its own")
    if message.role != Role.ROLE_USER:
        raise InvalidParamsError("the role of a message to an agent is ROLE_USER")
    for name, given in (("messageId", message.message_id), ("contextId", message.context_id)):
        if len(given) > LONGEST_ID or not given.isprintable():
            raise InvalidParamsError(f"{name} has at most {LONGEST_ID} printable characters")
    if not message.message_id.strip():
        raise InvalidParamsError("a message has an id: messageId")
    modes = params.configuration.accepted_output_modes
    if modes and _TAKEN.isdisjoint(modes):
        raise ContentTypeNotSupportedError("results are text/plain; acceptedOutputModes must have it")
    return ForeignRequest(message.message_id, message.context_id, _text(message), agent)


def _text(message: Message) -> str:
    if not message.parts:
        raise InvalidParamsError("a message has at least one part")
    others = [kind for part in message.parts if (kind := part.WhichOneof("content")) != "text"]
    if others:
        raise ContentTypeNotSupportedError(
            f"a part of the kind {others[0] or 'nothing'!r} cannot be read; send text, and nothing else"
        )
    text = "\n\n".join(part.text for part in message.parts).strip()
    if not text or len(text) > LONGEST_TEXT:
        raise InvalidParamsError(f"the text of a message has 1 to {LONGEST_TEXT:,} characters")
    return text


def page_of(tasks: Sequence[Task], params: ListTasksRequest) -> ListTasksResponse:
    """Return one page of the tasks that match `params`. The task that changed last comes first. Raises
    InvalidParamsError."""
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
        raise InvalidParamsError("pageToken is unknown here")
    return cursor.sort_key()
