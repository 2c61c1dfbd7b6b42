"""Map board states to A2A task states, with their messages and the result artifact.

    pending      SUBMITTED, until work begins                 completed    COMPLETED, with the result
    in_progress  WORKING                                      failed       FAILED
    blocked, review, rejected   WORKING                       cancelled    CANCELED
    waiting for the operator    AUTH_REQUIRED                 archived     the state before

The first end of a task that a foreign agent sees is final, whatever the operator does with the board task later.
Foreign agents see only states and approved results. They see no messages of the agents and no reasons of reviewers.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from a2a.types import Artifact, Message, Part, Role, Task, TaskArtifactUpdateEvent, TaskState, TaskStatus
from a2a.types import TaskStatusUpdateEvent as StatusUpdate
from google.protobuf.timestamp_pb2 import Timestamp

from artoo.agents.foreign.foreign_tasks import ForeignTask
from artoo.agents.foreign.messages import MORE_ASKED
from artoo.contracts.agents import FOREIGN, BoardState, TaskMoved

RESULT = "result"
Update = StatusUpdate | TaskArtifactUpdateEvent

_TOLD: dict[BoardState, tuple[TaskState, str]] = {
    BoardState.PENDING: (TaskState.TASK_STATE_SUBMITTED, "It waits for an agent."),
    BoardState.IN_PROGRESS: (TaskState.TASK_STATE_WORKING, "It is being worked on."),
    BoardState.BLOCKED: (TaskState.TASK_STATE_WORKING, "The work was interrupted and will continue later."),
    BoardState.REVIEW: (TaskState.TASK_STATE_WORKING, "It is done and waits for its review."),
    BoardState.REJECTED: (TaskState.TASK_STATE_WORKING, "Its review sent it back; it is done again."),
    BoardState.COMPLETED: (TaskState.TASK_STATE_COMPLETED, "It is done and approved."),
    BoardState.FAILED: (TaskState.TASK_STATE_FAILED, "It came to no result."),
    BoardState.CANCELLED: (TaskState.TASK_STATE_CANCELED, "It was cancelled."),
}
_WAITS = "Only the operator can continue it; ask again later."


def statuses(seen: ForeignTask) -> tuple[TaskStatus, ...]:
    """Return the statuses of a task in order, up to its end. Each belongs to one move on the board.

    A move that changes nothing for the foreign agent is left out.
    """
    return tuple(_statuses(seen))


def waiting(seen: ForeignTask) -> TaskStatus | None:
    """Return the status AUTH_REQUIRED if only the operator can continue the task. No move on the board belongs to
    this status."""
    if seen.ended is not None or not seen.waits:
        return None
    return _status(seen, seen.moves[-1], TaskState.TASK_STATE_AUTH_REQUIRED, _WAITS)


def rests(seen: ForeignTask) -> bool:
    """Return whether the task has ended or waits for the operator. If so, a stream ends."""
    return seen.ended is not None or seen.waits


def task_of(seen: ForeignTask, result: Sequence[str], history: int | None = None) -> Task:
    """Build the A2A task. `result`: the texts of a completed task. `history`: the maximum number of messages (None:
    all)."""
    task = Task(id=seen.task.id, context_id=seen.context, status=waiting(seen) or statuses(seen)[-1])
    if result:
        task.artifacts.append(artifact(result))
    first = 0 if history is None else max(0, len(seen.messages) - history)
    for said in seen.messages[first:]:
        task.history.append(
            Message(
                message_id=said.message,
                task_id=seen.task.id,
                context_id=seen.context,
                role=Role.ROLE_USER,
                parts=[Part(text=said.text)],
            )
        )
    return task


def refused_task(message: Message, why: str) -> Task:
    """Build a rejected task, which is the answer if the quota of the sender is used up.

    The task is not on the board, so a later request cannot find it. The same message may be sent again.
    """
    status = TaskStatus(state=TaskState.TASK_STATE_REJECTED)
    status.timestamp.GetCurrentTime()
    task = Task(id=str(uuid.uuid4()), context_id=message.context_id or str(uuid.uuid4()), status=status)
    said = Message(message_id=str(uuid.uuid4()), task_id=task.id, context_id=task.context_id)
    said.role = Role.ROLE_AGENT
    said.parts.append(Part(text=why))
    task.status.message.CopyFrom(said)
    return task


def updates(seen: ForeignTask, known: int, result: Sequence[str]) -> Iterator[Update]:
    """Yield the updates after the first `known` statuses. The result is yielded before the final status."""
    for status in statuses(seen)[known:]:
        if status.state == TaskState.TASK_STATE_COMPLETED and result:
            yield TaskArtifactUpdateEvent(
                task_id=seen.task.id, context_id=seen.context, artifact=artifact(result), last_chunk=True
            )
        yield StatusUpdate(task_id=seen.task.id, context_id=seen.context, status=status)


def artifact(result: Sequence[str]) -> Artifact:
    """Build the artifact of a result."""
    return Artifact(
        artifact_id=RESULT, name=RESULT, parts=[Part(text=text, media_type="text/plain") for text in result]
    )


def _statuses(seen: ForeignTask) -> Iterator[TaskStatus]:
    before: tuple[TaskState, str] | None = None
    begun = False
    for moved in seen.moves:
        if moved.after is BoardState.ARCHIVED:
            continue
        begun |= moved.after is BoardState.IN_PROGRESS
        told = before if moved.after is BoardState.PENDING and begun else _told(seen, moved)
        if told is None:
            continue
        if told != before:
            yield _status(seen, moved, *told)
        before = told
        if moved is seen.ended:
            return


def _told(seen: ForeignTask, moved: TaskMoved) -> tuple[TaskState, str]:
    if moved.after is BoardState.REJECTED and moved.reason == MORE_ASKED:
        return TaskState.TASK_STATE_WORKING, "More was asked for; it is done again."
    if moved.after is BoardState.CANCELLED and moved.actor == FOREIGN + seen.peer:
        return TaskState.TASK_STATE_CANCELED, "It was cancelled by who handed it in."
    return _TOLD[moved.after]


def _status(seen: ForeignTask, moved: TaskMoved, state: TaskState, text: str) -> TaskStatus:
    moment = Timestamp()
    moment.FromDatetime(moved.at)
    message = Message(
        message_id=f"{moved.event}-{TaskState.Name(state)}",
        task_id=seen.task.id,
        context_id=seen.context,
        role=Role.ROLE_AGENT,
        parts=[Part(text=text)],
    )
    return TaskStatus(state=state, message=message, timestamp=moment)
