"""Whole tasks that are steered from terminals: `artoo say` in another one, `--plan`, Ctrl-C. A scripted model."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from cli_process import artoo, model_at
from cli_terminal import CTRL_C, Terminal, terminal

from artoo.tasklog.reader import list_tasks
from artoo.testing import Asked, Reply, ScriptedServer, native_call, with_body
from artoo.testing.replies import Scripted

ANSWERED = r"\A(?![\s\S]*unfinished)\s*\S"
CHECKLIST = [{"text": "read a.txt", "status": "done"}, {"text": "say it", "status": "in_progress"}]


def planned(intent: str) -> dict[str, object]:
    """A plan of one step that any answer meets."""
    check = {"check": "output_matches", "regex": ANSWERED}
    criterion = {"text": "there is an answer", "mode": "verifiable", "check": check}
    return {"subtasks": [{"intent": intent, "tool": "shell"}], "task_criteria": [criterion]}


def says(text: str) -> Reply:
    """The executor's last step."""
    return with_body({"tool": "answer"}, text, "text")


def works_until(words: str) -> ScriptedServer:
    """A model that shows a checklist and then goes on working until these words reach it."""

    def answer(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return planned("name the colour")
        if words in asked.user:
            return says("BLUE")
        if "say it" not in str(asked.body["messages"]):
            return native_call({"items": CHECKLIST}, "update_plan")
        return with_body({"tool": "shell", "is_final": False}, f"echo {asked.number}; sleep 0.3")

    return ScriptedServer(answer)


def on_terminal(server: ScriptedServer, project: Path, *arguments: str) -> AbstractContextManager[Terminal]:
    """`artoo run` on a terminal."""
    words = ["run", "--no-memory", *arguments, "Which colour?"]
    return terminal("", words, project.parent / ".artoo", model_at(server))


async def say(*arguments: str) -> tuple[int, str]:
    """Runs `artoo say …` as another terminal would. Returns its exit code and what it said."""
    code, out, err = await artoo("say", *arguments)
    return code, out + err


async def test_a_message_from_another_terminal_reaches_a_running_task(project: Path) -> None:
    """The executor acts on it. Once the task has ended, `artoo say` names the command that goes on with it."""
    async with works_until("Name it in capitals.") as server:
        with on_terminal(server, project) as screen:
            await asyncio.to_thread(screen.wait_for, "say it")  # the checklist
            [running] = list_tasks(project.parent / ".artoo")
            assert await say(running.task_id[:13], "Name", "it in capitals.") == (0, "The message is sent.\n")
            await asyncio.to_thread(screen.wait_for, "BLUE")
            assert await asyncio.to_thread(screen.end) == 0
        code, said = await say(running.task_id, "too late")
        assert code == 1 and "does not run now" in said and f"artoo resume {running.task_id}" in said
        code, said = await say(running.task_id, " ")
        assert code == 2 and "the message is empty" in said
        assert (await say("0198f000", "hello"))[0] == 2


async def test_ctrl_c_interrupts_the_turn_and_asks_what_should_be_different(project: Path) -> None:
    """What is typed then reaches the executor, and the task goes on."""
    async with works_until("Name it in capitals.") as server:

        def play() -> int:
            with on_terminal(server, project) as screen:
                screen.wait_for("say it")
                screen.send(CTRL_C)
                screen.wait_for("What should be different?")
                screen.send("Name it in capitals.\r")
                screen.wait_for("BLUE")
                return screen.end()

        assert await asyncio.to_thread(play) == 0


def plans_twice() -> ScriptedServer:
    """A model whose second plan is another one."""

    def answer(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return planned("name it in German" if "in German" in asked.user else "name the colour")
        return says("blau" if "name it in German" in asked.user else "blue")

    return ScriptedServer(answer)


@pytest.mark.parametrize(
    ("keys", "output", "code"), [("y\r", "blue", 0), ("in German, please\r", "blau", 0), ("n\r", "", 130)]
)
async def test_a_plan_is_approved_changed_or_rejected(project: Path, keys: str, output: str, code: int) -> None:
    """`--plan` shows the plan before anything runs. Other words than yes and no say what must be different."""
    async with plans_twice() as server:

        def asked(screen: Terminal, intent: str) -> None:
            screen.wait_for(f"1. {intent}")
            screen.wait_for("there is an answer")
            screen.wait_for("Run it?")
            assert not [each for each in server.player.requests if each.contract == "ExecutorStep"]

        def play() -> tuple[int, str]:
            with on_terminal(server, project, "--plan") as screen:
                asked(screen, "name the colour")
                screen.send(keys)
                if "German" in keys:
                    screen.forget()
                    asked(screen, "name it in German")
                    screen.send("y\r")
                return screen.end(), screen.shown_all

        ended, shown = await asyncio.to_thread(play)
        assert ended == code, shown
        assert output in shown
        assert bool(output) == bool([each for each in server.player.requests if each.contract == "ExecutorStep"])


async def test_a_plan_needs_a_user(project: Path) -> None:
    """Without a terminal, `--plan` is refused before anything runs."""
    code, out, err = await artoo("run", "--plan", "Which colour?")
    assert code == 2 and "--plan" in out + err
    assert list_tasks(project.parent / ".artoo") == []
