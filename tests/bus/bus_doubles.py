"""Messages and buses for the tests of the stream."""

from __future__ import annotations

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.plan import SubTask
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

TASK = "task-1"


def new_bus() -> InProcessBus:
    return InProcessBus(FakeClock(), SequentialIds())


def request(text: str = "count the files") -> UserRequest:
    return UserRequest(text=text, project="/project", workspace="/workspace")


def subtask(subtask_id: str) -> SubTask:
    return SubTask(subtask_id=subtask_id, parent_task_id=TASK, sequence=1, intent="count")


def called(answer: str = "{}") -> ModelCalled:
    return ModelCalled(
        role=Role.EXECUTOR,
        contract="ExecutorStep",
        tier="tool",
        model="m",
        system="contract: ExecutorStep",
        user="go",
        answer=answer,
    )


def texts(envelopes: list[Envelope]) -> list[str]:
    """The texts of UserRequests, the answers of ModelCalls."""
    found: list[str] = []
    for envelope in envelopes:
        payload = envelope.payload
        if isinstance(payload, UserRequest):
            found.append(payload.text)
        elif isinstance(payload, ModelCalled):
            found.append(payload.answer)
    return found
