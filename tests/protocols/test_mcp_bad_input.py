"""What a client must not send, and what becomes of it: errors in plain words, and nothing is started."""

from __future__ import annotations

import json

from hosting import Place
from malformed import malformed
from raw_client import INITIALIZE, raw_client


async def test_two_hundred_lines_that_are_no_messages(place: Place) -> None:
    """Each is answered with an error, the server lives on, and no task was begun."""
    async with raw_client(place) as client:
        await client.say(INITIALIZE)
        assert "result" in await client.hear()
        for number in range(200):
            assert (await client.error_to(malformed(number)))[1] in (-32_700, -32_600)
        await client.say({"jsonrpc": "2.0", "id": "still", "method": "ping"})
        assert (await client.hear())["id"] == "still"
    assert not list(place.home.glob("tasks/*"))


async def test_what_comes_before_the_handshake_starts_nothing(place: Place) -> None:
    """A call, a cancellation and an answer to nothing, each before `initialize`: the call is refused."""
    call = {"name": "run", "arguments": {"request": "run: touch made"}}
    async with raw_client(place) as client:
        await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}})
        await client.say({"jsonrpc": "2.0", "id": 77, "result": {}})
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        assert (await client.error_to(json.dumps(message).encode()))[0] == 1
    assert not list(place.home.glob("tasks/*"))


async def test_arguments_that_do_not_fit_start_nothing(place: Place) -> None:
    """Wrong types, an unknown tool, an id that is a path, a project that is not there: the tool's own error."""
    calls: list[tuple[str, dict[str, object]]] = [
        ("run", {}),
        ("run", {"request": ""}),
        ("run", {"request": 7}),
        ("run", {"request": "x", "wait_seconds": -1}),
        ("run", {"request": "x", "project": "/nowhere/at/all"}),
        ("run", {"request": "x", "project": "relative"}),
        ("run", {"request": "x" * 300_000}),
        ("result", {"task_id": "../../etc"}),
        ("apply", {"task_id": "0", "digest": "0"}),
        ("undo", {"task_id": "0"}),
        ("resume", {"task_id": "0"}),
        ("nothing", {}),
    ]
    async with raw_client(place) as client:
        await client.say(INITIALIZE)
        await client.hear()
        for number, (name, arguments) in enumerate(calls):
            params = {"name": name, "arguments": arguments}
            await client.say({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
            answer = await client.hear()
            result = answer.get("result")
            assert "error" in answer or (isinstance(result, dict) and result["isError"]), (name, answer)
    assert not list(place.home.glob("tasks/*"))


async def test_an_argument_that_a_tool_does_not_have_is_no_call(place: Place) -> None:
    """`max_call` for `max_calls`: it was left out in silence, and the task ran without its budget."""
    call = {"name": "run", "arguments": {"request": "run: touch made", "max_call": 1}}
    async with raw_client(place) as client:
        await client.say(INITIALIZE)
        await client.hear()
        await client.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        await client.say({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": call})
        said = json.dumps(await client.hear())
        assert "run has no max_call; it takes: request, project" in said and '"isError": true' in said
        await client.say({"jsonrpc": "2.0", "id": 6, "method": "tools/list"})
        assert json.dumps(await client.hear()).count('"additionalProperties": false') >= 11
    assert not list(place.home.glob("tasks/*"))
