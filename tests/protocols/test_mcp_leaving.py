"""A client that is gone in the middle: each task ends in a state that can be named, and no file is changed."""

from __future__ import annotations

import pytest
from hosting import EDIT, Place
from raw_client import INITIALIZE, raw_client

from artoo.contracts.solution import FinalResult, StoppedBy
from artoo.tasklog.reader import list_tasks


async def left(place: Place, request: str, heard: str) -> FinalResult:
    """The result of a task whose client leaves as soon as it has heard this method, or an answer (empty)."""
    call = {"name": "run", "arguments": {"request": request}, "_meta": {"progressToken": 1}}
    async with raw_client(place) as client:
        await client.say(INITIALIZE)
        await client.hear()
        await client.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await client.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        while (await client.hear()).get("method", "") != heard:
            pass
    [task] = list_tasks(place.home)
    assert task.result is not None
    return task.result


@pytest.mark.parametrize(
    ("request_", "heard", "stopped", "state"),
    [
        ("run: wait", "notifications/progress", StoppedBy.INTERRUPTED, "none"),
        (f"run: {EDIT}", "elicitation/create", None, "pending"),
    ],
    ids=["at work", "asked"],
)
async def test_a_client_that_leaves(
    place: Place, request_: str, heard: str, stopped: StoppedBy | None, state: str
) -> None:
    """At work: cancelled, and it can be resumed. Asked: it waits for a yes as if nobody had been there."""
    result = await left(place, request_, heard)
    assert (result.stopped_by, result.changes.state) == (stopped, state)
    assert place.text("a.txt") == "old\n"


async def test_a_call_that_is_cancelled_ends_its_task(place: Place) -> None:
    """`notifications/cancelled` for the call that began it: the task is interrupted, the server lives on."""
    call = {"name": "run", "arguments": {"request": "run: wait"}, "_meta": {"progressToken": 1}}
    async with raw_client(place) as client:
        await client.say(INITIALIZE)
        await client.hear()
        await client.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        await client.hear()
        await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        await client.say({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        while (await client.hear()).get("id") != 2:
            pass
    [task] = list_tasks(place.home)
    assert task.result is not None
    assert task.result.stopped_by is StoppedBy.INTERRUPTED
