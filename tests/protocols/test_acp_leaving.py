"""An editor that is gone, in each state: the task ends in a state that can be named, and no file is changed."""

from __future__ import annotations

import asyncio

import pytest
from acp.helpers import text_block
from acp.schema import AgentPlanUpdate, PromptResponse, UserMessageChunk
from editor import Connected, Editor, connected
from hosting import DELETE, Place
from raw_client import raw_client, where

from artoo.contracts.solution import StoppedBy
from artoo.tasklog.reader import list_tasks


async def begun(here: Connected, place: Place, request: str) -> tuple[str, asyncio.Task[PromptResponse]]:
    """A session and the prompt in it."""
    session = (await here.agent.new_session(cwd=str(place.project))).session_id
    prompt = here.agent.prompt(prompt=[text_block(request)], session_id=session)
    return session, asyncio.ensure_future(prompt)


@pytest.mark.parametrize(
    ("request_", "asks", "stopped", "state"),
    [("run: wait", False, StoppedBy.INTERRUPTED, "none"), (f"run: {DELETE}", True, None, "pending")],
    ids=["at work", "asked"],
)
async def test_an_editor_that_leaves(
    place: Place, request_: str, asks: bool, stopped: StoppedBy | None, state: str
) -> None:
    """At work: interrupted, and it can go on. Asked: it waits for a yes. The session has both when it is loaded."""
    editor = Editor(None)
    async with connected(place, editor) as here:
        session, prompt = await begun(here, place, request_)
        await editor.until(lambda: bool(editor.asked if asks else editor.of(AgentPlanUpdate)))
    with pytest.raises(ConnectionError):
        await prompt
    [task] = list_tasks(place.home)
    assert task.result is not None
    assert (task.result.stopped_by, task.result.changes.state) == (stopped, state)
    assert (place.project / "gone.txt").exists()
    again = Editor()
    async with connected(place, again) as here:
        await here.agent.load_session(cwd=str(place.project), session_id=session)
    assert again.said(UserMessageChunk) == request_


async def test_an_editor_that_leaves_a_command(place: Place) -> None:
    """Gone while `/apply` asks: nobody has said yes, and what waited waits on."""
    editor = Editor("keep")
    async with connected(place, editor) as here:
        session, prompt = await begun(here, place, f"run: {DELETE}")
        await prompt
        editor.says = None
        asked = len(editor.asked)
        command = asyncio.ensure_future(here.agent.prompt(prompt=[text_block("/apply")], session_id=session))
        await editor.until(lambda: len(editor.asked) > asked)
    with pytest.raises(ConnectionError):
        await command
    [task] = list_tasks(place.home)
    assert (place.project / "gone.txt").exists()
    again = Editor("apply")
    async with connected(place, again) as here:
        await here.agent.load_session(cwd=str(place.project), session_id=session)
        await here.agent.prompt(prompt=[text_block(f"/apply {task.task_id}")], session_id=session)
    assert not (place.project / "gone.txt").exists()


async def test_an_editor_that_is_killed_while_it_is_told(place: Place) -> None:
    """Its end of both pipes is gone at once: the task is interrupted all the same."""
    editor = Editor()
    async with connected(place, editor) as here:
        _, prompt = await begun(here, place, "run: wait")
        await editor.until(lambda: bool(editor.of(AgentPlanUpdate)))
        here.hang_up()
    prompt.cancel()
    [task] = list_tasks(place.home)
    assert task.result is not None
    assert task.result.stopped_by is StoppedBy.INTERRUPTED


@pytest.mark.parametrize("said", [0, 1, 2], ids=["nothing said", "after the handshake", "with a session"])
async def test_an_editor_that_leaves_before_it_asks(place: Place, said: int) -> None:
    """No prompt: no task, and the process ends well."""
    messages: list[dict[str, object]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": where(place)},
    ]
    async with raw_client(place, "acp") as client:
        for message in messages[:said]:
            await client.say(message)
            assert "result" in await client.hear()
    assert not list(place.home.glob("tasks/*"))
