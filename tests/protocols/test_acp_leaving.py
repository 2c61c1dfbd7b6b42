"""An editor that is gone, in each state: the task ends in a state that can be named, and no file is changed."""

from __future__ import annotations

import asyncio

import pytest
from acp.helpers import text_block
from acp.schema import AgentPlanUpdate, PromptResponse, UserMessageChunk
from editor import Connected, Editor, connected
from hosting import DELETE, Place

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
