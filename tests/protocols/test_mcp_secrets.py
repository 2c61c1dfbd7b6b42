"""What an MCP client is told has no secrets, looking changes nothing, and a question too long is no dead end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hosting import EDIT, Place
from mcp import Client
from test_mcp_client import NEWEST, Person, called, connected

SECRET = "ghp_" + "Ab3dEf6h" * 4 + "Ij5k"


async def _error(client: Client, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content)


@NEWEST
async def test_nothing_that_leaves_has_a_secret(place: Place, era: str) -> None:
    """Neither progress and the result nor what waits, what is listed, what is asked and an error holds it."""
    person = Person("keep")
    told: list[str | None] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with connected(place, era, person) as client:
        request = f"run: {EDIT}; rm gone.txt # {SECRET}"
        result = await client.call_tool("run", {"request": request}, progress_callback=progress)
        said: list[Any] = [told, person.asked, result.structured_content]
        said.append(await called(client, "status"))
        task = said[-1]["waiting"][0]["task_id"]
        said.append(await called(client, "diff", task_id=task))
        said.append(await called(client, "result", task_id=task))
        said.append(await _error(client, "result", task_id=SECRET))
        said.append(await _error(client, "diff", task_id=SECRET))
        for name in ("artoo://tasks", f"artoo://tasks/{task}/log", f"artoo://tasks/{task}/diff"):
            read = await client.read_resource(name)
            said.append(read.model_dump(mode="json"))
        with pytest.raises(Exception, match="no task") as raised:
            await client.read_resource(f"artoo://tasks/{SECRET}/log")
        said.append(str(raised.value))
    assert told and person.asked
    assert SECRET not in json.dumps(said)
    assert "[redacted]" in json.dumps(said)


async def test_looking_at_the_audit_changes_nothing(place: Place) -> None:
    """The tool only reads, as it says: what it told once it tells again, to the next process too."""
    async with connected(place, "legacy") as client:
        await called(client, "run", request=f"run: {EDIT}")
    found: list[dict[str, Any]] = []
    for _ in range(2):
        async with connected(place, "legacy") as client:
            found += [await called(client, "audit"), await called(client, "audit")]
    counts = [one["messages"] for one in found]
    assert counts[0] > 0 and counts == [counts[0]] * 4


async def test_the_audit_knows_a_task_as_soon_as_it_has_ended(place: Place) -> None:
    """Not when the statistics are stored next: a client that asks after each task hears of it."""
    async with connected(place, "legacy") as client:
        for tasks in (1, 2):
            await called(client, "run", request="run: echo done")
            assert (await called(client, "audit"))["tasks"] == tasks


@NEWEST
async def test_a_question_that_is_too_long(place: Place, era: str) -> None:
    """It is not asked: the difference waits, and can be applied some paths at a time."""
    many = place.project / "many"
    many.mkdir()
    for number in range(300):
        (many / f"{number}{'n' * 200}").touch()
    person = Person("apply")
    async with connected(place, era, person) as client:
        ran = await called(client, "run", request="run: rm -r many", wait_seconds=300)
        assert (ran["status"], person.asked) == ("pending", [])
        task = ran["task_id"]
        digest = (await called(client, "diff", task_id=task))["digest"]
        assert "at a time" in await _error(client, "apply", task_id=task, digest=digest)
        one = next(many.iterdir())
        applied = await called(client, "apply", task_id=task, digest=digest, paths=[str(one)])
        assert (applied["state"], applied["applied"], one.exists()) == ("partly", [str(one)], False)
    assert len(person.asked) == 1
