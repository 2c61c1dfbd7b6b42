"""A foreign agent that vanishes: its task goes on, waits, or is done, as the board says; nothing else happens."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from foreign import PATIENCE, Served, books, hosted, started

from artoo.contracts.agents import BoardState
from artoo.team.office import Office

HEADERS = {"a2a-version": "1.0", "content-type": "application/json"}


async def _until(office: Office, *states: BoardState) -> str:
    async with asyncio.timeout(PATIENCE), office.wake.watching() as following:
        while not (found := await office.board.list(set(states))):
            await following(1.0)
        return found[0].id


async def _vanish(served: Served, text: str, method: str, office: Office, *at: BoardState) -> None:
    """Asks by this method, and is gone as soon as the board is so far."""
    body = {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]}}

    async def ask() -> None:
        async with (
            served.http() as http,
            http.stream("POST", f"{served.url}/v1/{method}", json=body, headers=HEADERS) as stream,
        ):
            async for _ in stream.aiter_raw():
                pass

    asking = asyncio.create_task(ask())
    await _until(office, *at)
    asking.cancel()
    await asyncio.wait({asking})


@pytest.mark.parametrize("method", ["message:stream", pytest.param("message:send", marks=pytest.mark.torture)])
async def test_gone_at_work(tmp_path: Path, method: str) -> None:
    """Who is gone while the agent works finds the task done later, and the server serves on."""
    async with hosted(tmp_path) as place, started(place) as served, books(place) as office:
        await _vanish(served, "make slow_l1.txt", method, office, BoardState.IN_PROGRESS)
        task_id = await _until(office, BoardState.COMPLETED)
        async with served.http() as http:
            found = await http.get(f"{served.url}/v1/tasks/{task_id}", headers=HEADERS)
        assert found.json()["status"]["state"] == "TASK_STATE_COMPLETED"
