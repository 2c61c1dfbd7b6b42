"""`artoo run --background`, `ps`, `attach` and `stop`, with real processes and a scripted model."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from cli_process import artoo, model_at
from cli_terminal import terminal

from artoo.testing import Asked, ScriptedServer, with_body
from artoo.testing.replies import Scripted


@pytest.fixture
def project(project: Path) -> Path:
    """With one file."""
    (project / "a.txt").write_text("old\n")
    return project


def changes(asked: Asked) -> Scripted:
    """A task that changes a.txt, which needs approval."""
    if asked.contract == "Plan":
        check = {"check": "file_matches", "path": "a.txt", "regex": "new"}
        criterion = {"text": "it says new", "mode": "verifiable", "check": check}
        return {"subtasks": [{"intent": "change a.txt", "tool": "shell", "success_criteria": [criterion]}]}
    return with_body({"tool": "shell", "is_final": True}, "sed -i s/old/new/ a.txt && cat a.txt")


def works_on(asked: Asked) -> Scripted:
    """A task that goes on until it is stopped."""
    if asked.contract == "Plan":
        return {"subtasks": [{"intent": "work", "tool": "shell"}], "task_criteria": ["it is done"]}
    return with_body({"tool": "shell", "is_final": False}, f"echo {asked.number}; sleep 0.3")


async def said_by(server: ScriptedServer, *arguments: str) -> tuple[int, str]:
    """Runs `artoo …`. Returns its exit code and what it said."""
    code, out, err = await artoo(*arguments, environ=model_at(server))
    return code, out + err


async def test_a_question_of_a_background_task_is_answered_where_it_is_attached(project: Path) -> None:
    """The task waits with its review; the terminal that attaches shows it, and its answer counts."""
    async with ScriptedServer(changes) as server:
        code, said = await said_by(server, "run", "--no-memory", "--background", "Change a.txt.")
        assert code == 0, said
        name = re.findall(r"artoo attach (\S+)", said)[0]
        with terminal("", ["attach", name], project.parent / ".artoo") as screen:
            await asyncio.to_thread(screen.wait_for, "[a]pply all")
            screen.send("a\n")
            assert await asyncio.to_thread(screen.end) == 0
    assert (project / "a.txt").read_text() == "new\n"


async def test_a_background_task_is_listed_and_stopped(project: Path) -> None:
    """It outlives the command that started it; `artoo stop` ends it, and nothing runs then."""
    async with ScriptedServer(works_on) as server:
        _, said = await said_by(server, "run", "--no-memory", "--budget", "calls=500", "--background", "Work on.")
        name = re.findall(r"artoo attach (\S+)", said)[0]
        _, listed = await said_by(server, "ps", "--json")
        (task,) = json.loads(listed)
        assert task["request"] == "Work on." and task["state"] == "task"
        code, stopped = await said_by(server, "stop", name)
        assert code == 0 and "asked to stop" in stopped
        code, ended = await said_by(server, "attach", name)
        assert "interrupted" in ended and code == 130
        assert json.loads((await said_by(server, "ps", "--json"))[1]) == []


async def test_a_mistake_is_told_by_the_command_that_starts_it(project: Path) -> None:
    async with ScriptedServer({}) as server:
        code, said = await said_by(server, "run", "--background", "--budget", "calls=none", "Work.")
    assert code == 2 and "calls" in said
