"""A foreign agent at work: the SDK's own client against a real process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from a2a.types import CancelTaskRequest, GetTaskRequest, StreamResponse, SubscribeToTaskRequest, TaskState
from a2a.utils.constants import TransportProtocol
from foreign import PATIENCE, books, client_of, first_task, hosted, message, started, state

from artoo.contracts.agents import BoardState, TaskMoved
from artoo.team.office import Office


async def _is(office: Office, task_id: str, wanted: BoardState) -> None:
    async with asyncio.timeout(PATIENCE), office.wake.watching() as following:
        while (await office.board.get(task_id)).state is not wanted:
            await following(1.0)


def _kinds(answers: list[StreamResponse]) -> list[str]:
    return [
        TaskState.Name(one.status_update.status.state).removeprefix("TASK_STATE_").lower()
        if one.HasField("status_update")
        else str(one.WhichOneof("payload"))
        for one in answers
    ]


@pytest.mark.parametrize("binding", [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON])
async def test_a_task_by_stream(tmp_path: Path, binding: TransportProtocol) -> None:
    """A stream begins with the task, tells the work and the result, ends with the end; the file is made."""
    async with hosted(tmp_path) as place, started(place) as served, client_of(served, binding, "ada") as client:
        answers = [answer async for answer in client.send_message(message("make one.txt", "m1"))]
        assert _kinds(answers) == ["task", "working", "working", "artifact_update", "completed"]
        task = await client.get_task(GetTaskRequest(id=answers[0].task.id))
        assert state(task) == "completed"
        assert task.artifacts[0].parts[0].text
        assert task.history[0].parts[0].text == "make one.txt"
        async with books(place) as office:
            kept = await office.board.get(task.id)
            log = await office.board.log(task.id)
        assert (kept.creator, kept.assignee) == ("a2a:partner", "ada")
        assert isinstance(log[0], TaskMoved)
        assert log[0].actor == "a2a:partner"
    assert (place.root / "workspace" / "one.txt").read_text() == "one\n"


async def test_a_stream_is_left_and_the_task_cancelled(tmp_path: Path) -> None:
    """Who leaves a stream finds the task at work; who cancels it finds it cancelled, in the client's own name."""
    async with (
        hosted(tmp_path) as place,
        started(place) as served,
        client_of(served) as client,
        books(place) as office,
    ):
        task = await first_task(client, message("wait two.txt", "m1"))
        await _is(office, task.id, BoardState.IN_PROGRESS)
        following = client.subscribe(SubscribeToTaskRequest(id=task.id))
        assert state((await anext(following)).task) == "working"
        assert state(await client.cancel_task(CancelTaskRequest(id=task.id))) == "canceled"
        assert _kinds([answer async for answer in following])[-1] == "canceled"
        assert (await office.board.get(task.id)).state is BoardState.CANCELLED
        last = (await office.board.log(task.id))[-1]
        assert last.actor == "a2a:partner"
    assert not (place.root / "workspace" / "two.txt").exists()
