"""The operator's policy for foreign agents: what they may ask, what they are told, what it may cost."""

from __future__ import annotations

import asyncio
from pathlib import Path

from a2a.client import A2AClientError
from a2a.types import GetTaskRequest, TaskState
from a2a.utils.errors import A2AError
from foreign import PATIENCE, PEER, Served, books, client_of, hosted, message, started, state

from artoo.contracts.agents import OPERATOR, BoardState, TrustLevel
from artoo.contracts.recording import TaskOpened
from artoo.tasklog.reader import find_log


async def _refusal(served: Served, text: str, name: str) -> str:
    async with client_of(served) as client:
        try:
            answer = await anext(client.send_message(message(text, name, return_immediately=True)))
            if answer.task.status.state == TaskState.TASK_STATE_REJECTED:
                return answer.task.status.message.parts[0].text
        except (A2AError, A2AClientError) as error:
            return str(error)
    raise AssertionError("it was taken")


async def test_probation(tmp_path: Path) -> None:
    """What a foreign agent on probation asks is reviewed whoever did it; before, nothing of it is told."""
    peers = {"partner": {**PEER, "trust": "probation"}}
    async with hosted(tmp_path, peers) as place, started(place) as served, client_of(served) as client:
        answers = [answer async for answer in client.send_message(message("make six.txt", "m1"))]
        last = answers[-1].status_update.status
        assert "Only the operator" in last.message.parts[0].text
        task = await client.get_task(GetTaskRequest(id=answers[0].task.id))
        assert (state(task), len(task.artifacts)) == ("auth_required", 0)
        assert not (place.root / "workspace" / "six.txt").exists()
        async with books(place) as office:
            kept = await office.board.get(task.id)
            assert (kept.state, bool(kept.summary)) == (BoardState.REVIEW, True)
            proposal = await office.approvals.look(kept)
            assert proposal is not None
            await office.approvals.approve(task.id, OPERATOR, "", submission=1, digest=proposal.digest)
        task = await client.get_task(GetTaskRequest(id=task.id))
        assert state(task) == "completed"
        assert task.artifacts[0].parts[0].text == kept.summary
        assert (place.root / "workspace" / "six.txt").exists()


async def test_another_senior_reviews(tmp_path: Path) -> None:
    """With a second senior in the team the review is theirs, and the stream goes on to the end."""
    peers, team = {"partner": {**PEER, "trust": "probation"}}, {"ada": TrustLevel.SENIOR, "bob": TrustLevel.SENIOR}
    async with hosted(tmp_path, peers, team) as place, started(place) as served, books(place) as office:
        async with client_of(served, agent="ada") as client:
            answers = [answer async for answer in client.send_message(message("make seven.txt", "m1"))]
        log = await office.board.log(answers[0].task.id)
        assert [getattr(one, "actor", "") for one in log][-1] == "bob"


async def test_bounds(tmp_path: Path) -> None:
    """More open tasks than allowed, more in a day than allowed: refused with what is allowed, nothing is begun."""
    peers = {"partner": {**PEER, "open": 1, "day": 2}}
    async with (
        hosted(tmp_path, peers) as place,
        started(place) as served,
        books(place) as office,
        client_of(served) as client,
    ):
        first = message("wait eight.txt", "m1", return_immediately=True)
        task = (await anext(client.send_message(first))).task
        assert "allows 1 at a time" in await _refusal(served, "make nine.txt", "m2")
        again = (await anext(client.send_message(message("wait eight.txt", "m1", return_immediately=True)))).task
        assert again.id == task.id
        assert "said something else" in await _refusal(served, "make ten.txt", "m1")
        await office.board.cancel(task.id, OPERATOR)
        await anext(client.send_message(message("make eleven.txt", "m3")))
        async with asyncio.timeout(PATIENCE), office.wake.watching() as following:
            while await office.board.list({BoardState.PENDING, BoardState.IN_PROGRESS, BoardState.REVIEW}):
                await following(1.0)
        assert "allows 2" in await _refusal(served, "make twelve.txt", "m4")
        assert len(await office.board.list()) == 2


async def test_budget_and_who_asked(tmp_path: Path) -> None:
    """A task runs within the policy's budget, and its log says which foreign agent asked."""
    peers = {"partner": {**PEER, "calls": 7, "seconds": 50}}
    async with hosted(tmp_path, peers) as place, started(place) as served, books(place) as office:
        async with client_of(served) as client:
            answers = [answer async for answer in client.send_message(message("make thirteen.txt", "m1"))]
        run = (await office.board.get(answers[0].task.id)).run
        assert run is not None
        _, fields = next(iter(find_log(place.home, run).fields()))
        opened = TaskOpened.model_validate(fields["payload"])
        assert (opened.max_calls, opened.asked_by and opened.asked_by.label) == (7, "a2a partner")
