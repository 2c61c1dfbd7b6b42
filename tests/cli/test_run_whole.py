"""Whole tasks through the command line: a real runtime in its own process, a scripted model behind HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from cli_process import artoo, model_at
from cli_terminal import terminal

from artoo.testing import Asked, with_body
from artoo.testing.replies import Scripted
from artoo.testing.script import Entry
from artoo.testing.server import ScriptedServer

CHANGE = "sed -i s/old/new/ a.txt && echo made > made.txt && cat a.txt"


@pytest.fixture
def project(project: Path) -> Path:
    """With one file."""
    (project / "a.txt").write_text("old\n")
    return project


def planned(word: str) -> dict[str, object]:
    """A plan that is done when a.txt says `word`."""
    check = {"check": "file_matches", "path": "a.txt", "regex": word}
    criteria = [{"text": f"a.txt says {word}", "mode": "verifiable", "check": check}]
    return {"subtasks": [{"intent": "mend a.txt", "tool": "shell", "success_criteria": criteria}]}


def script() -> dict[str, Entry]:
    """One subtask, one command, one criterion that code checks."""
    return {
        "Plan": planned("new"),
        "ExecutorStep": with_body({"tool": "shell", "is_final": True}, CHANGE),
    }


def names_in(directory: Path) -> list[str]:
    """What is there."""
    return sorted(path.name for path in directory.iterdir())


async def test_without_a_terminal_an_edit_waits_and_a_new_process_applies_it(project: Path) -> None:
    """The answer first, then the one command to type, exit code 4; `artoo apply` does it."""
    async with ScriptedServer(script()) as server:
        code, out, err = await artoo("run", "--no-memory", "mend a.txt", environ=model_at(server))
    assert code == 4, err
    assert out.startswith("new\n\n")
    assert "Pending your approval: 1 edited, 1 new\n  apply it: artoo apply 0" in out
    assert "done" not in out.lower()
    assert (project / "a.txt").read_text() == "old\n"
    assert not (project / "made.txt").exists()
    assert (await artoo("apply"))[0] == 0
    assert (project / "a.txt").read_text() == "new\n"
    assert (project / "made.txt").read_text() == "made\n"


async def test_json_of_a_pending_task(project: Path) -> None:
    """`--json` has the state, the classes, and the commands; discard leaves every byte."""
    async with ScriptedServer(script()) as server:
        code, out, err = await artoo("run", "--json", "--no-memory", "mend a.txt", environ=model_at(server))
    assert code == 4, err
    result = json.loads(out)
    assert (result["status"], result["changes"]["state"]) == ("pending", "pending")
    assert result["decided"][-1]["by"] in ("check", "fact")
    assert (await artoo(*result["pending"]["commands"]["discard"].split()[1:]))[0] == 0
    assert names_in(project) == ["a.txt"]
    assert (project / "a.txt").read_text() == "old\n"


async def test_edits_that_are_trusted_take_effect(project: Path) -> None:
    """`--apply edits`: exit code 0, and the files that were made and changed are named from here."""
    async with ScriptedServer(script()) as server:
        arguments = ("run", "--apply", "edits", "--no-memory", "--check", "grep -q new a.txt", "mend a.txt")
        code, out, err = await artoo(*arguments, environ=model_at(server))
    assert code == 0, err
    assert "Made: made.txt\nChanged: a.txt\n" in out
    assert (project / "a.txt").read_text() == "new\n"


async def test_the_review_on_a_terminal(project: Path) -> None:
    """The answer comes first, once; then one question; after a yes the result names what was changed."""
    async with ScriptedServer(script()) as server:

        def play() -> int:
            arguments, home = ["run", "--no-memory", "mend a.txt"], project.parent / ".artoo"
            with terminal("", arguments, home, model_at(server)) as screen:
                screen.wait_for("? Apply the changes of this task?")
                screen.wait_for("~ edited  a.txt")
                screen.wait_for("[a]pply all")
                screen.send("a\r")
                screen.wait_for("Changed: a.txt")
                code, lines = screen.end(), [line.strip() for line in screen.shown_all.splitlines()]
                assert lines.count("new") == 1
                assert lines.index("new") < next(n for n, line in enumerate(lines) if line.startswith("? Apply"))
                return code

        assert await asyncio.to_thread(play) == 0
    assert (project / "a.txt").read_text() == "new\n"


async def test_the_models_download_is_asked_for(project: Path) -> None:
    """Without a server and without the file a terminal asks first; no is an end that says what to do."""
    with terminal("", ["run", "Which colour?"], project.parent / ".artoo") as screen:
        screen.wait_for("Download the local model")
        screen.send("\n")
        assert await asyncio.to_thread(screen.end) == 3
        assert "artoo model pull" in screen.shown_all


async def test_piped_input_is_material_of_the_request(project: Path) -> None:
    """`cat people.csv | artoo "…"`: the request names a file that tools and commands read; no words are lost."""
    check = {"check": "output_matches", "regex": "36"}
    criteria = [{"text": "the age is there", "mode": "verifiable", "check": check}]
    plan = {"subtasks": [{"intent": "find the age", "tool": "shell", "success_criteria": criteria}]}
    step = with_body({"tool": "shell", "is_final": True}, "grep Ada /tmp/input")
    async with ScriptedServer({"Plan": plan, "ExecutorStep": step}) as server:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "artoo", "run", "--no-memory", "How old is Ada?"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **model_at(server)},
        )
        out, _ = await process.communicate(b"Alan,41\nAda,36\n")
    assert process.returncode == 0 and out.decode().startswith("Ada,36")
    (asked,) = server.player.of("Plan")
    assert "the file /tmp/input, 15 bytes, 2 lines" in asked.user
    assert names_in(project) == ["a.txt"]


async def test_what_must_be_different_is_the_next_request(project: Path) -> None:
    """A sentence at the review keeps the changes, and the task goes on in their workspace; one review has both."""
    commands = iter((CHANGE, "sed -i s/new/newer/ a.txt && cat a.txt"))

    def answer(asked: Asked) -> Scripted:
        if asked.contract == "TaskSpec":
            return {"task_id": "mend", "intent": "make it newer"}
        if asked.contract == "Plan":
            return planned("newer" if "make it newer" in asked.user else "new")
        return with_body({"tool": "shell", "is_final": True}, next(commands))

    async with ScriptedServer(answer) as server:

        def play() -> int:
            arguments, home = ["run", "--no-memory", "mend a.txt"], project.parent / ".artoo"
            with terminal("", arguments, home, model_at(server)) as screen:
                screen.wait_for("[a]pply all")
                screen.send("no, make it newer\r")
                screen.wait_for("[a]pply all", 2)
                screen.send("a\r")
                screen.wait_for("Changed: a.txt")
                return screen.end()

        assert await asyncio.to_thread(play) == 0
    assert (project / "a.txt").read_text() == "newer\n"
