"""The server dies in the middle: the task goes on, and whoever handed it in learns of its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from a2a.types import GetTaskRequest, SubscribeToTaskRequest
from foreign import PATIENCE, books, client_of, first_task, hosted, message, started, state

from artoo.contracts.agents import BoardState


async def test_a_server_that_is_killed_at_work(tmp_path: Path) -> None:
    """Killed while the agent works, started again: the same task is completed, once; the same message is it."""
    async with hosted(tmp_path) as place, books(place) as office:
        async with started(place) as served, client_of(served) as client:
            task = await first_task(client, message("make slow_three.txt", "m1"))
            async with asyncio.timeout(PATIENCE), office.wake.watching() as following:
                while not (await office.board.get(task.id)).run:
                    await following(1.0)
            await served.killed()
        async with started(place) as served, client_of(served) as client:
            found = await client.get_task(GetTaskRequest(id=task.id))
            if state(found) != "completed":
                answers = [answer async for answer in client.subscribe(SubscribeToTaskRequest(id=task.id))]
                assert answers[-1].HasField("status_update")
            assert state(await client.get_task(GetTaskRequest(id=task.id))) == "completed"
            again = [answer async for answer in client.send_message(message("make slow_three.txt", "m1"))]
            assert (again[0].task.id, state(again[0].task)) == (task.id, "completed")
        assert len(await office.board.list()) == 1
        log = await office.board.log(task.id)
        after = [getattr(one, "after", None) for one in log]
        assert after.count(BoardState.COMPLETED) == 1
        assert BoardState.BLOCKED in after
        assert (place.root / "workspace" / "slow_three.txt").read_text() == "slow_three\n"
