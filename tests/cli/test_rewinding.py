"""`/rewind` and `/fork` in a conversation on a terminal, with a scripted model and real changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cli_process import model_at
from cli_terminal import terminal

from artoo.runtime.task.conversations import latest_sessions
from artoo.testing import Asked, ScriptedServer, with_body
from artoo.testing.replies import Scripted


@pytest.fixture
def project(project: Path) -> Path:
    """With one file."""
    (project / "a.txt").write_text("old\n")
    return project


def answers(asked: Asked) -> Scripted:
    """Makes a file for the first request, changes a.txt for the second; each is one command."""
    second = "Change" in asked.user
    if asked.contract == "TaskSpec":
        return {"task_id": "edit", "intent": "Change a.txt." if second else "Make new.txt."}
    if asked.contract == "Plan":
        check = {"check": "output_matches", "regex": "done"}
        criterion = {"text": "it is done", "mode": "verifiable", "check": check}
        intent = "Change a.txt" if second else "Make new.txt"
        return {"subtasks": [{"intent": intent, "tool": "shell"}], "task_criteria": [criterion]}
    command = "sed -i s/old/new/ a.txt" if second else "echo made > new.txt"
    return with_body({"tool": "shell", "is_final": True}, f"{command}; echo done")


async def test_a_conversation_is_rewound_with_its_files(project: Path) -> None:
    """What is pending is discarded, what was applied is undone; both exchanges are gone."""
    home = project.parent / ".artoo"
    async with ScriptedServer(answers) as server:
        with terminal("", ["chat"], home, model_at(server)) as screen:

            def until(text: str, prompt: str) -> None:
                screen.wait_for(text)
                while prompt not in screen.shown.rpartition(text)[2]:
                    screen.wait_for(prompt, screen.shown.count(prompt) + 1)

            async def types(line: str, text: str, prompt: str = "artoo>") -> None:
                screen.forget()
                screen.send(line)
                await asyncio.to_thread(until, text, prompt)

            await asyncio.to_thread(until, "/help lists commands", "artoo>")
            await types("Make new.txt.\r", "task 0")
            assert (project / "new.txt").exists()
            await types("Change a.txt.\r", "[a]pply all", ":")
            await types("k\n", "task 0")
            await types("/fork other\r", "This is the conversation other now")
            await types("/rewind 2\r", "Rewind?", ":")
            await types("y\n", "The conversation is empty.")
            screen.send("/quit\r")
            assert await asyncio.to_thread(screen.end) == 0
    assert not (project / "new.txt").exists() and (project / "a.txt").read_text() == "old\n"
    assert {len(each.exchanges) for each in latest_sessions(home, 5) if each.name != "other"} == {2}
    assert not [each for each in latest_sessions(home, 5) if each.name == "other" and each.exchanges]
