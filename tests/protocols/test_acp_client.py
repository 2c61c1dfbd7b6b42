"""artoo as an editor's agent, driven by the ACP library's own client over pipes."""

from __future__ import annotations

import asyncio

import pytest
from acp.exceptions import RequestError
from acp.helpers import text_block
from acp.schema import (
    AgentPlanUpdate,
    FileEditToolCallContent,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
)
from editor import Connected, Editor, connected
from hosting import DELETE, EDIT, Place

from artoo.contracts.confirmation import ConfirmationAnswer, Consent
from artoo.contracts.solution import FinalResult, StoppedBy
from artoo.runtime.approvals.prompt_store import answer_question, open_questions
from artoo.tasklog.reader import find_log, list_tasks


async def asked_for(here: Connected, place: Place, request: str) -> tuple[str, str]:
    """A prompt in a session of its own: the session, and why it stopped."""
    session = (await here.agent.new_session(cwd=str(place.project))).session_id
    answer = await here.agent.prompt(prompt=[text_block(request)], session_id=session)
    return session, answer.stop_reason


def the_result(place: Place) -> FinalResult:
    [task] = list_tasks(place.home)
    assert task.result is not None
    return task.result


async def test_a_task_that_edits_a_file(place: Place) -> None:
    """Plan, call, question with the difference, answer: shown in order, and a yes applies it."""
    editor = Editor("apply")
    async with connected(place, editor) as here:
        assert (await asked_for(here, place, f"run: {EDIT}"))[1] == "end_turn"
    assert place.text("a.txt") == "new\n"
    plans = [[entry.status for entry in plan.entries] for plan in editor.of(AgentPlanUpdate)]
    assert plans == [["pending"], ["in_progress"], ["completed"]]
    call, changes = editor.of(ToolCallStart)
    assert (call.kind, call.status, call.raw_input) == ("execute", "in_progress", {"input": EDIT})
    assert [one.status for one in editor.of(ToolCallProgress)] == ["completed", "completed"]
    assert changes.kind == "edit"
    [(asked, options)] = editor.asked
    assert asked.tool_call_id == changes.tool_call_id
    [shown] = [one for one in asked.content or () if isinstance(one, FileEditToolCallContent)]
    assert (shown.path, shown.old_text, shown.new_text) == (str(place.project / "a.txt"), "old\n", "new\n")
    assert {one.option_id: one.kind for one in options} == {
        "apply": "allow_once",
        "keep": "reject_once",
        "discard": "reject_once",
    }


async def test_answered_in_another_window(place: Place) -> None:
    """A question that an editor shows is on the desk too: an answer there counts, and is not the editor's."""
    editor = Editor(None)
    async with connected(place, editor) as here:
        asking = asyncio.create_task(asked_for(here, place, f"run: {DELETE}"))
        await editor.until(lambda: bool(editor.asked))
        question = (await asyncio.to_thread(open_questions, place.home))[0]
        digest = question.request.digest
        await asyncio.to_thread(
            answer_question, place.home, question.task_id, question.key, digest, Consent.ONCE, "page"
        )
        await asking
    messages = [one.payload for one in find_log(place.home, the_result(place).task_id).envelopes()]
    answered = next(one for one in messages if isinstance(one, ConfirmationAnswer))
    assert (answered.by, answered.through, answered.consent) == ("person", "", Consent.ONCE)
    assert not (place.project / "gone.txt").exists()


@pytest.mark.parametrize(
    ("says", "state", "stands"),
    [("discard", "discarded", "failed"), ("", "pending", "pending")],
)
async def test_a_no_keeps_or_drops(place: Place, says: str, state: str, stands: str) -> None:
    """Dropped, and dismissed, which is a no: no file is changed, and the editor sees how it stands."""
    editor = Editor(says)
    async with connected(place, editor) as here:
        await asked_for(here, place, f"run: {DELETE}")
    assert the_result(place).changes.state == state
    assert (place.project / "gone.txt").exists()
    assert editor.of(ToolCallProgress)[-1].status == stands
    assert ("pending your approval: 1 deleted" in editor.said()) == (state == "pending")
    assert ("the changes were discarded" in editor.said()) == (state == "discarded")


async def test_cancelled_in_the_middle(place: Place) -> None:
    """The prompt ends as cancelled, the task says so and can go on; the session takes the next prompt."""
    editor = Editor()
    async with connected(place, editor) as here:
        session = (await here.agent.new_session(cwd=str(place.project))).session_id
        prompt = asyncio.ensure_future(here.agent.prompt(prompt=[text_block("run: wait")], session_id=session))
        await editor.until(lambda: bool(editor.of(AgentPlanUpdate)))
        await here.agent.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
        status = {one.tool_call_id: one.status for one in editor.of(ToolCallStart)}
        status |= {one.tool_call_id: one.status for one in editor.of(ToolCallProgress)}
        assert "in_progress" not in status.values()
        again = await here.agent.prompt(prompt=[text_block("run: true")], session_id=session)
        assert again.stop_reason == "end_turn"
    _, cancelled = list_tasks(place.home)
    assert cancelled.result is not None and cancelled.result.stopped_by is StoppedBy.INTERRUPTED


async def test_cancelled_while_it_asks(place: Place) -> None:
    """A question that nobody has answered is nobody's no: the changes wait, and the prompt was cancelled."""
    editor = Editor(None)
    async with connected(place, editor) as here:
        session = (await here.agent.new_session(cwd=str(place.project))).session_id
        prompt = asyncio.ensure_future(here.agent.prompt(prompt=[text_block(f"run: {DELETE}")], session_id=session))
        await editor.until(lambda: bool(editor.asked))
        await here.agent.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"
    assert the_result(place).changes.state == "pending"
    messages = [one.payload for one in find_log(place.home, the_result(place).task_id).envelopes()]
    assert [one.by for one in messages if isinstance(one, ConfirmationAnswer)] == ["nobody"]


async def test_a_session_is_loaded_by_another_process(place: Place) -> None:
    """It is listed, and all that was said is told again; what is no session is refused."""
    async with connected(place, Editor()) as here:
        session = (await asked_for(here, place, "run: echo first"))[0]
    editor = Editor()
    async with connected(place, editor) as here:
        [listed] = (await here.agent.list_sessions(cwd=str(place.project))).sessions
        assert (listed.session_id, listed.cwd, listed.title) == (session, str(place.project), "run: echo first")
        assert (await here.agent.list_sessions(cwd=str(place.home))).sessions == []
        await here.agent.load_session(cwd=str(place.project), session_id=session)
        assert editor.said(UserMessageChunk) == "run: echo first"
        assert "first" in editor.said()
        with pytest.raises(RequestError, match="no session"):
            await here.agent.load_session(cwd=str(place.project), session_id="another")


async def test_a_prompt_during_a_turn_reaches_the_running_task(place: Place) -> None:
    """It is answered at once, and the model reads it before its next turn."""
    editor = Editor()
    async with connected(place, editor) as here:
        session = (await here.agent.new_session(cwd=str(place.project))).session_id
        prompt = asyncio.ensure_future(here.agent.prompt(prompt=[text_block("run: hear")], session_id=session))
        await editor.until(lambda: bool(editor.of(ToolCallStart)))
        steered = await here.agent.prompt(prompt=[text_block("use the blue one")], session_id=session)
        assert steered.stop_reason == "end_turn" and not prompt.done()
        assert (await prompt).stop_reason == "end_turn"
    assert "heard it" in editor.said()
