"""What an editor must not send, and what becomes of it: errors in plain words, and nothing is started."""

from __future__ import annotations

from typing import Any, cast

from hosting import Place
from raw_client import Raw, raw_client, where

HELLO = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {"protocolVersion": 1}}


async def greeted(client: Raw) -> None:
    """The handshake."""
    await client.say(HELLO)
    assert "result" in await client.hear()


async def opened(client: Raw, place: Place, request_id: object = "new") -> str:
    """A session."""
    await client.say({"jsonrpc": "2.0", "id": request_id, "method": "session/new", "params": where(place)})
    session_id = cast("dict[str, str]", (await client.hear())["result"])["sessionId"]
    assert (await client.hear())["method"] == "session/update"  # its commands
    return session_id


async def refused(client: Raw, request_id: object, method: str, params: object) -> str:
    """The words of the error that a request brings."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return await refused_line(client, message)


async def refused_line(client: Raw, message: dict[str, object]) -> str:
    await client.say(message)
    answer = await client.hear()
    assert answer["id"] == message["id"], answer
    return str(cast("dict[str, Any]", answer["error"])["message"])


async def test_two_hundred_requests_with_wrong_parameters(place: Place) -> None:
    """Missing, of another kind, unknown: each is an error to its own id, and nothing is begun."""
    wrong: list[tuple[str, object]] = [
        ("session/new", {}),
        ("session/new", None),
        ("session/new", {"cwd": 7, "mcpServers": []}),
        ("session/new", {"cwd": "relative", "mcpServers": []}),
        ("session/new", {"cwd": "/nowhere/at/all", "mcpServers": []}),
        ("session/load", {"cwd": str(place.project), "mcpServers": [], "sessionId": "../../etc/passwd"}),
        ("session/new", {"cwd": "/half a \ud83d", "mcpServers": []}),
        ("session/new", {"cwd": "/a\0b", "mcpServers": []}),
        ("session/new", {"cwd": "/x" * 40_000, "mcpServers": []}),
        ("session/load", {"cwd": str(place.project), "mcpServers": []}),
        ("session/prompt", {"sessionId": "nobody", "prompt": [{"type": "text", "text": "run: touch made"}]}),
        ("session/prompt", {"sessionId": "nobody", "prompt": "run: touch made"}),
        ("session/prompt", {"prompt": []}),
        ("session/prompt", {"sessionId": ["x"], "prompt": []}),
        ("initialize", {"protocolVersion": 1}),
        ("initialize", {"protocolVersion": "one"}),
        ("session/cancel", {"sessionId": "nobody"}),
        ("authenticate", {"methodId": "x"}),
        ("nothing/at_all", {}),
        ("_own/method", {}),
    ]
    async with raw_client(place, "acp") as client:
        await greeted(client)
        for number in range(200):
            method, params = wrong[number % len(wrong)]
            assert await refused(client, number, method, params), (method, params)
    assert not list(place.home.glob("tasks/*"))


async def test_prompts_that_cannot_be_read(place: Place) -> None:
    """No words, a picture, a whole file, a request that is too long: an error, and nothing is begun."""
    prompts: list[list[dict[str, object]]] = [
        [],
        [{"type": "text", "text": "  "}],
        [{"type": "image", "data": "AAAA", "mimeType": "image/png"}],
        [{"type": "resource", "resource": {"uri": "file:///x", "text": "x"}}],
        [{"type": "text", "text": "x" * 300_000}],
    ]
    async with raw_client(place, "acp") as client:
        await greeted(client)
        session = await opened(client, place)
        for number, prompt in enumerate(prompts, 1):
            assert await refused(client, number, "session/prompt", {"sessionId": session, "prompt": prompt})
    assert not list(place.home.glob("tasks/*"))


async def test_what_comes_before_the_handshake_starts_nothing(place: Place) -> None:
    """A session, a prompt, a cancellation, and an answer to nothing: what asks for an answer is refused."""
    async with raw_client(place, "acp") as client:
        await client.say({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "x"}})
        await client.say({"jsonrpc": "2.0", "id": 77, "result": {}})
        new = where(place)
        assert "initialize" in await refused(client, 1, "session/new", new)
        assert "initialize" in await refused(client, 2, "session/load", {**new, "sessionId": "x"})
        assert "initialize" in await refused(client, 3, "session/prompt", {"sessionId": "x", "prompt": []})
    assert not list(place.home.glob("tasks/*"))


async def test_answers_that_are_none_decide_nothing(place: Place) -> None:
    """To a permission request: an unknown option, another form, an error. Each is a no, and nothing is applied."""
    async with raw_client(place, "acp") as client:
        await greeted(client)
        for number, bad in enumerate(
            (
                {"result": {"outcome": {"outcome": "selected", "optionId": "everything"}}},
                {"result": {"outcome": "yes"}},
                {"error": {"code": -32_603, "message": "no"}},
            )
        ):
            session = await opened(client, place, f"new{number}")
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "run: rm gone.txt"}]}
            await client.say({"jsonrpc": "2.0", "id": number, "method": "session/prompt", "params": prompt})
            while (message := await client.hear()).get("id") != number or "method" in message:
                if message.get("method") == "session/request_permission":
                    await client.say({"jsonrpc": "2.0", "id": message["id"], **bad})
            assert (place.project / "gone.txt").exists()
