"""artoo as an MCP server, driven by the SDK's own client over pipes, in both eras of the protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from hosting import DELETE, EDIT, Place
from mcp import Client, StdioServerParameters
from mcp.client import ClientRequestContext
from mcp_types import (
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    TextResourceContents,
)

from artoo.contracts.confirmation import ConfirmationAnswer
from artoo.contracts.recording import AskedBy, TaskOpened
from artoo.tasklog.reader import find_log

ERAS = pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
NEWEST = pytest.mark.parametrize("era", ["2026-07-28"])


class Person:
    """Answers every form with one word, and remembers what was asked."""

    def __init__(self, says: str) -> None:
        self.says = says
        self.asked: list[str] = []

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": self.says})


@asynccontextmanager
async def connected(place: Place, era: str, person: Person | None = None) -> AsyncGenerator[Client]:
    """A client with a server of its own."""
    command, *arguments = place.command("mcp", "--project", str(place.project))
    server = StdioServerParameters(command=command, args=arguments, env=place.environ, cwd=place.project)
    info = Implementation(name="the-test", version="7")
    async with Client(server, mode=era, elicitation_callback=person, client_info=info) as client:
        yield client


async def called(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """The structured answer of a tool that does not fail."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return cast("dict[str, Any]", result.structured_content)


@ERAS
async def test_a_task_is_run_looked_at_applied_and_undone(place: Place, era: str) -> None:
    """Without forms the edit waits; the difference says it, apply makes it, undo takes it back."""
    async with connected(place, era) as client:
        told: list[str | None] = []

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            told.append(message)

        result = await client.call_tool("run", {"request": f"run: {EDIT}"}, progress_callback=progress)
        assert not result.is_error, result.content
        ran = cast("dict[str, Any]", result.structured_content)
        assert (ran["status"], ran["changes"], place.text("a.txt")) == ("pending", "pending", "old\n")
        assert told
        task = ran["task_id"]
        found = await called(client, "diff", task_id=task)
        assert found["counts"] == {"edit": 1}
        assert "+new" in found["changes"][0]["diff"]
        assert [one["task_id"] for one in (await called(client, "status"))["waiting"]] == [task]
        refused = await client.call_tool("apply", {"task_id": task, "digest": "another"})
        assert refused.is_error
        assert place.text("a.txt") == "old\n"
        assert (await called(client, "apply", task_id=task, digest=found["digest"]))["state"] == "applied"
        assert place.text("a.txt") == "new\n"
        assert (await called(client, "undo", task_id=task))["restored"] == [str(place.project / "a.txt")]
        assert place.text("a.txt") == "old\n"


@NEWEST
async def test_a_message_reaches_a_running_task(place: Place, era: str) -> None:
    """The tool `send` writes to a task that goes on after its call; the model reads it before its next turn."""
    async with connected(place, era) as client:
        begun = await called(client, "run", request="run: hear", wait_seconds=0)
        await called(client, "send", task_id=begun["task_id"], text="use the blue one")
        ended = await called(client, "result", task_id=begun["task_id"], wait_seconds=60)
        assert "heard it" in ended["answer"]
        refused = await client.call_tool("send", {"task_id": begun["task_id"], "text": "too late"})
        assert refused.is_error


@ERAS
async def test_consent_is_asked_where_the_client_has_forms(place: Place, era: str) -> None:
    """A yes in the form applies at once; who asked and through what it was answered is on the stream."""
    person = Person("apply")
    async with connected(place, era, person) as client:
        ran = await called(client, "run", request=f"run: {DELETE}")
    assert (ran["status"], ran["changes"]) == ("success", "applied")
    assert not (place.project / "gone.txt").exists()
    assert "gone.txt" in person.asked[0]
    messages = [envelope.payload for envelope in find_log(place.home, ran["task_id"]).envelopes()]
    opened = next(each for each in messages if isinstance(each, TaskOpened))
    assert opened.asked_by == AskedBy(protocol="mcp", client="the-test", version="7")
    answered = next(each for each in messages if isinstance(each, ConfirmationAnswer))
    assert (answered.by, answered.through) == ("person", "mcp the-test 7")


@NEWEST
async def test_a_deletion_is_asked_about_once_more_before_it_is_applied(place: Place, era: str) -> None:
    """Kept at first, then applied by the tool: the form names the path, and a no leaves it."""
    person = Person("keep")
    async with connected(place, era, person) as client:
        task = (await called(client, "run", request=f"run: {DELETE}"))["task_id"]
        digest = (await called(client, "diff", task_id=task))["digest"]
        assert (await called(client, "apply", task_id=task, digest=digest))["state"] == "pending"
        assert (place.project / "gone.txt").exists()
        person.says = "apply"
        assert (await called(client, "apply", task_id=task, digest=digest))["state"] == "applied"
        assert len(person.asked) == 3
        assert not (place.project / "gone.txt").exists()


async def test_a_result_says_what_became_of_its_changes_since(place: Place) -> None:
    """Asked again after apply and undo, or after discard, `result` and `status` do not offer what is done."""
    async with connected(place, "legacy") as client:

        async def stands(task: str) -> list[tuple[str, str]]:
            latest = next(one for one in (await called(client, "status"))["latest"] if one["task_id"] == task)
            return [
                (one["status"], one["changes"]) for one in (await called(client, "result", task_id=task), latest)
            ]

        ran = await called(client, "run", request=f"run: {EDIT}; {DELETE}")
        task, digest = ran["task_id"], (await called(client, "diff", task_id=ran["task_id"]))["digest"]
        assert await stands(task) == [("pending", "pending")] * 2
        assert "pending your approval: 1 deleted, 1 edited" in ran["answer"] and "artoo " not in ran["answer"]
        await called(client, "apply", task_id=task, digest=digest, paths=["a.txt"])
        assert await stands(task) == [("pending", "partly")] * 2
        digest = (await called(client, "diff", task_id=task))["digest"]
        await called(client, "apply", task_id=task, digest=digest)
        assert await stands(task) == [("success", "applied")] * 2
        assert "waits" not in (await called(client, "result", task_id=task))["answer"]
        await called(client, "undo", task_id=task)
        assert await stands(task) == [("success", "put back")] * 2
        dropped = (await called(client, "run", request=f"run: {EDIT}"))["task_id"]
        await called(client, "discard", task_id=dropped)
        assert await stands(dropped) == [("success", "discarded")] * 2
    async with connected(place, "legacy") as later:
        assert (await called(later, "result", task_id=dropped))["changes"] == "discarded"


async def test_paths_are_named_from_the_project_and_never_empty(place: Place) -> None:
    """A relative path is what the person would write; an empty one, or none, is an error and applies nothing."""
    person = Person("keep")
    async with connected(place, "2026-07-28", person) as client:
        task = (await called(client, "run", request=f"run: {EDIT}; {DELETE}"))["task_id"]
        digest = (await called(client, "diff", task_id=task))["digest"]
        for paths in ([], [""], ["/"], ["a.txt", ""]):
            refused = await client.call_tool("apply", {"task_id": task, "digest": digest, "paths": paths})
            assert refused.is_error, paths
        assert (place.text("a.txt"), (place.project / "gone.txt").exists()) == ("old\n", True)
        asked = len(person.asked)
        named = {"task_id": task, "digest": digest}
        assert (await called(client, "apply", **named, paths=["gone.txt"]))["state"] == "pending"
        assert len(person.asked) == asked + 1
        assert (await called(client, "apply", **named, paths=["a.txt"]))["state"] == "partly"
        assert (place.text("a.txt"), (place.project / "gone.txt").exists()) == ("new\n", True)


async def test_a_long_task_is_kept_by_its_handle_and_cancelled(place: Place) -> None:
    """A call that waits no longer leaves the task at work; `cancel` ends it honestly, `discard` forgets it."""
    async with connected(place, "2026-07-28") as client:
        ran = await called(client, "run", request="run: wait", wait_seconds=0)
        assert ran["status"] == "working"
        assert (await called(client, "result", task_id=ran["task_id"], wait_seconds=0.1))["status"] == "working"
        standing = await called(client, "status")
        assert [one["status"] for one in (*standing["running"], *standing["latest"])] == ["working", "working"]
        listed = (await client.read_resource("artoo://tasks")).contents[0]
        assert isinstance(listed, TextResourceContents)
        assert [one["status"] for one in json.loads(listed.text)] == ["working"]
        ended = await called(client, "cancel", task_id=ran["task_id"])
        assert (ended["status"], ended["stopped_by"], ended["resumable"]) == ("failed", "interrupted", True)


async def test_a_client_that_vanishes_leaves_a_task_that_can_go_on(place: Place) -> None:
    """The pipe is closed in the middle of a task: it has a result that says so, and another client sees it."""
    async with connected(place, "legacy") as client:
        task = (await called(client, "run", request="run: wait", wait_seconds=0))["task_id"]
    async with connected(place, "legacy") as client:
        found = await called(client, "result", task_id=task)
    assert (found["stopped_by"], found["resumable"]) == ("interrupted", True)


async def test_logs_and_differences_are_resources(place: Place) -> None:
    """The list, a log with the request, a difference with its lines; what is not there is an error."""
    async with connected(place, "2026-07-28") as client:
        task = (await called(client, "run", request=f"run: {EDIT}"))["task_id"]
        for name, expected in (("log", '"UserRequest"'), ("diff", "+new")):
            read = await client.read_resource(f"artoo://tasks/{task}/{name}")
            assert isinstance(read.contents[0], TextResourceContents)
            assert expected in read.contents[0].text
        read = await client.read_resource("artoo://tasks")
        assert isinstance(read.contents[0], TextResourceContents)
        assert [one["task_id"] for one in json.loads(read.contents[0].text)] == [task]
        with pytest.raises(Exception, match="no task"):
            await client.read_resource("artoo://tasks/0000/log")


async def test_nothing_that_leaves_holds_a_secret_of_a_request_or_an_error(place: Place) -> None:
    """A request with a key, told while it runs, while it waits and from the log; an id that is a key."""
    key = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    async with connected(place, "2026-07-28") as client:
        answers: list[object] = [await called(client, "run", request=f"With API_TOKEN={key} run: {EDIT}")]
        answers.append(await called(client, "run", request=f"With API_TOKEN={key} run: wait", wait_seconds=0))
        standing = await called(client, "status")
        assert len(standing["waiting"]) == 1 and len(standing["running"]) == 1 and standing["latest"]
        answers += [standing, await client.read_resource("artoo://tasks")]
        for tool in ("result", "diff", "resume"):
            refused = await client.call_tool(tool, {"task_id": key})
            assert refused.is_error and "is no task id" in str(refused.content)
            answers.append(refused)
    assert "[redacted]" in str(standing["waiting"]) and key[:8] not in str(answers)


async def test_every_tool_says_what_it_takes_gives_and_does(place: Place) -> None:
    """Schemas both ways and hints; memory and audit can be asked."""
    async with connected(place, "2026-07-28") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        expected = "run status result diff apply discard resume undo recall audit cancel send"
        assert set(tools) == set(expected.split())
        assert all(tool.output_schema and tool.description and tool.annotations for tool in tools.values())
        settles = {name for name, tool in tools.items() if tool.annotations and tool.annotations.destructive_hint}
        assert settles == {"apply", "discard", "undo"}
        assert (await called(client, "recall", about="tool:glob"))["attention"] == 0
        assert (await called(client, "audit"))["messages"] == 0
