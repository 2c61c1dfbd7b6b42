"""More messages to a task that has not ended: what they ask for is in the result, and nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from a2a.types import GetTaskRequest, Message, Part, Role, SendMessageConfiguration, SendMessageRequest
from a2a.utils.errors import A2AError
from foreign import PATIENCE, PEER, books, client_of, first_task, hosted, message, started, state

from artoo.contracts.agents import BoardState
from artoo.team.office import Office


def more(text: str, name: str, task_id: str, **configuration: object) -> SendMessageRequest:
    """A further message of this id to a task."""
    made = Message(message_id=name, task_id=task_id, role=Role.ROLE_USER, parts=[Part(text=text)])
    return SendMessageRequest(message=made, configuration=SendMessageConfiguration(**configuration))  # type: ignore[arg-type]


async def _is(office: Office, task_id: str, wanted: BoardState) -> None:
    async with asyncio.timeout(PATIENCE), office.wake.watching() as following:
        while (await office.board.get(task_id)).state is not wanted:
            await following(1.0)


async def test_while_it_is_worked_on(tmp_path: Path) -> None:
    """The work goes on and is done again with both wishes; the history has both messages, in order."""
    async with (
        hosted(tmp_path) as place,
        started(place) as served,
        client_of(served) as client,
        books(place) as office,
    ):
        task = await first_task(client, message("make slow_one.txt", "m1"))
        await _is(office, task.id, BoardState.IN_PROGRESS)
        answers = [one async for one in client.send_message(more("make added.txt", "m2", task.id))]
        assert answers[0].task.id == task.id
        assert answers[0].task.context_id == task.context_id
        assert answers[-1].HasField("status_update")
        ended = await client.get_task(GetTaskRequest(id=task.id))
        assert state(ended) == "completed"
        assert [one.parts[0].text for one in ended.history] == ["make slow_one.txt", "make added.txt"]
        latest = await client.get_task(GetTaskRequest(id=task.id, history_length=1))
        assert [one.message_id for one in latest.history] == ["m2"]
        assert (await office.board.get(task.id)).submission == 2
        with pytest.raises(A2AError, match="over"):
            await anext(client.send_message(more("make late.txt", "m3", task.id)))
    workspace = place.root / "workspace"
    assert (workspace / "slow_one.txt").exists() and (workspace / "added.txt").exists()
    assert not (workspace / "late.txt").exists()


async def test_another_context_or_another_peers(tmp_path: Path) -> None:
    """A message with the wrong context, or to another agent's task, is refused, and the task is as it was."""
    peers = {"partner": PEER, "rival": PEER}
    async with hosted(tmp_path, peers) as place, started(place) as served, books(place) as office:
        async with client_of(served) as client:
            task = await first_task(client, message("wait three.txt", "m1"))
            wrong = more("make four.txt", "m2", task.id)
            wrong.message.context_id = "another"
            with pytest.raises(A2AError, match="contextId"):
                await anext(client.send_message(wrong))
        async with client_of(served, name="rival") as client:
            with pytest.raises(A2AError, match="not found"):
                await anext(client.send_message(more("make five.txt", "m3", task.id)))
        assert (await office.board.get(task.id)).text == "wait three.txt"
