"""Slash commands and modes of an editor's session: what the terminal has, and nothing unasked."""

from __future__ import annotations

import asyncio

import pytest
from acp.exceptions import RequestError
from acp.helpers import text_block
from acp.schema import (
    AgentPlanUpdate,
    AvailableCommandsUpdate,
    FileEditToolCallContent,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
)
from editor import Connected, Editor, connected
from hosting import DELETE, EDIT, Place

from artoo.tasklog.reader import list_tasks


async def prompted(here: Connected, session: str, text: str) -> str:
    """Prompts, and returns why it stopped."""
    return (await here.agent.prompt(prompt=[text_block(text)], session_id=session)).stop_reason


async def kept(here: Connected, place: Place, editor: Editor, request: str) -> str:
    """A session whose task's changes wait. The editor forgets what it was told."""
    editor.says = "keep"
    session = (await here.agent.new_session(cwd=str(place.project))).session_id
    await prompted(here, session, request)
    editor.updates.clear()
    editor.asked.clear()
    return session


async def test_commands_are_offered(place: Place) -> None:
    """A new session and a loaded one name their commands."""
    editor = Editor()
    async with connected(place, editor) as here:
        session = (await here.agent.new_session(cwd=str(place.project))).session_id
        await editor.until(lambda: bool(editor.of(AvailableCommandsUpdate)))
        names = [one.name for one in editor.of(AvailableCommandsUpdate)[0].available_commands]
        assert names == ["status", "diff", "apply", "discard", "undo", "resume"]
        await prompted(here, session, "run: echo first")
        editor.updates.clear()
        await here.agent.load_session(cwd=str(place.project), session_id=session)
        assert editor.of(AvailableCommandsUpdate)
    assert len(list_tasks(place.home)) == 1, "a command is no task"


async def test_what_waits_is_looked_at_applied_and_undone(place: Place) -> None:
    """/status names it, /diff shows it, /apply asks with the difference and applies, /undo puts it back."""
    editor = Editor()
    async with connected(place, editor) as here:
        session = await kept(here, place, editor, f"run: {EDIT}")
        task = list_tasks(place.home)[0].task_id
        await prompted(here, session, "/status")
        assert task in editor.said()
        await prompted(here, session, "/diff")
        [shown] = list(editor.of(ToolCallStart)[-1].content or ())
        assert isinstance(shown, FileEditToolCallContent)
        assert (shown.old_text, shown.new_text) == ("old\n", "new\n")
        assert place.text("a.txt") == "old\n"
        editor.says = "apply"
        await prompted(here, session, f"/apply {task[:12]}")
        assert len(editor.asked) == 1
        assert editor.of(ToolCallProgress)[-1].status == "completed"
        assert place.text("a.txt") == "new\n"
        await prompted(here, session, "/undo")
        assert task in editor.said()
        await prompted(here, session, f"/undo {task}")
        assert place.text("a.txt") == "old\n"


@pytest.mark.parametrize("says", ["keep", "", "discard"])
async def test_apply_without_a_yes(place: Place, says: str) -> None:
    """A no and a dismissed question leave it waiting; discard drops it. No file is changed."""
    editor = Editor()
    async with connected(place, editor) as here:
        session = await kept(here, place, editor, f"run: {DELETE}")
        editor.says = says
        await prompted(here, session, "/apply")
        await prompted(here, session, "/status")
        assert ("Pending:" in editor.said()) == (says != "discard")
        if says != "discard":
            await prompted(here, session, "/discard")
            assert "/discard " in editor.said(), "which one must be said"
            await prompted(here, session, f"/discard {list_tasks(place.home)[0].task_id}")
        with pytest.raises(RequestError, match="nothing is pending"):
            await prompted(here, session, "/apply")
    assert (place.project / "gone.txt").exists()


async def test_resume(place: Place) -> None:
    """A task that was cancelled goes on by /resume, and the session has it once, under the request that it was."""
    editor = Editor()
    async with connected(place, editor) as here:
        session = (await here.agent.new_session(cwd=str(place.project))).session_id
        with pytest.raises(RequestError):
            await prompted(here, session, "/resume")
        for text in ("run: wait", "/resume"):
            editor.updates.clear()
            going = asyncio.ensure_future(prompted(here, session, text))
            await editor.until(lambda: bool(editor.of(AgentPlanUpdate)))
            await here.agent.cancel(session_id=session)
            assert await going == "cancelled"
        assert len(list_tasks(place.home)) == 1
        editor.updates.clear()
        await here.agent.load_session(cwd=str(place.project), session_id=session)
        assert editor.said(UserMessageChunk) == "run: wait"


async def test_modes(place: Place) -> None:
    """The modes are those of --apply: edits takes effect unasked in one session, and is asked about in another."""
    editor = Editor("keep")
    async with connected(place, editor) as here:
        opened = await here.agent.new_session(cwd=str(place.project))
        assert opened.modes is not None
        assert opened.modes.current_mode_id == "new"
        assert [one.id for one in opened.modes.available_modes] == ["new", "edits", "live", "ask"]
        await here.agent.set_session_mode(session_id=opened.session_id, mode_id="edits")
        with pytest.raises(RequestError, match="there are ask, edits, live, new"):
            await here.agent.set_session_mode(session_id=opened.session_id, mode_id="all")
        await prompted(here, opened.session_id, f"run: {EDIT}")
        assert not editor.asked
        assert place.text("a.txt") == "new\n"
        (place.project / "a.txt").write_text("old\n")
        other = (await here.agent.new_session(cwd=str(place.project))).session_id
        await prompted(here, other, f"run: {EDIT}")
        assert len(editor.asked) == 1
        await here.agent.set_session_mode(session_id=other, mode_id="ask")
        await prompted(here, other, "run: echo made > made.txt")
        assert len(editor.asked) == 2
        assert not (place.project / "made.txt").exists()


async def test_a_session_keeps_its_mode(place: Place) -> None:
    """Loaded by another process, and before it was ever prompted, it is in the mode that was chosen."""
    async with connected(place, Editor()) as here:
        session = (await here.agent.new_session(cwd=str(place.project))).session_id
        await here.agent.set_session_mode(session_id=session, mode_id="ask")
    editor = Editor("keep")
    async with connected(place, editor) as here:
        loaded = await here.agent.load_session(cwd=str(place.project), session_id=session)
        assert loaded.modes is not None and loaded.modes.current_mode_id == "ask"
        await prompted(here, session, "run: echo made > made.txt")
        assert len(editor.asked) == 1 and not (place.project / "made.txt").exists()


async def test_what_waits_of_another_session_is_not_meant(place: Place) -> None:
    """Without an id, /diff and /apply are about the session's own tasks; the others are named by /status."""
    editor = Editor()
    async with connected(place, editor) as here:
        await kept(here, place, editor, f"run: {EDIT}")
        other = (await here.agent.new_session(cwd=str(place.project))).session_id
        for command in ("/diff", "/apply"):
            with pytest.raises(RequestError, match="nothing is pending in this session; 1 from elsewhere"):
                await prompted(here, other, command)
