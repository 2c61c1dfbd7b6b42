"""`artoo resume` and `artoo log replay`, as a person types them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from scenario import Each, Ended, Script, World, merged, plan, shell, subtask

from artoo import Artoo
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import SubTaskOutcome
from artoo.tasklog.layout import part_path, tasks_directory
from artoo.testing import Asked, ScriptedServer, slow
from artoo.testing.replies import Scripted

QUICK, OTHER = "do the quick one", "do the other one"


async def artoo(world: World, *arguments: str, base_url: str = "http://127.0.0.1:9/v1") -> tuple[int, str, str]:
    """The command in a process of its own: exit code, standard output, standard error."""
    environ = {
        **os.environ,
        "ARTOO_HOME": str(world.home),
        "OPENAI_BASE_URL": base_url,
        "OPENAI_MODEL": "scripted",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "artoo",
        *arguments,
        env=environ,
        cwd=world.project.parent,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


def step(asked: Asked) -> Scripted:
    return shell("wc -l < a.txt" if QUICK in asked.user.rpartition("Your subtask:\n")[2] else "wc -c < a.txt")


async def interrupted(world: World) -> Ended:
    world.file("a.txt", "x\ny\n")
    script: Script = {
        "Plan": plan(subtask(QUICK, tool="shell"), subtask(OTHER, tool="shell")),
        "ExecutorStep": Each.of(quick=shell("wc -l < a.txt"), other=slow(shell("true"), 60.0)),
    }

    async def stop(artoo: Artoo, envelope: Envelope) -> None:
        if isinstance(envelope.payload, SubTaskOutcome):
            artoo.interrupt()

    return await world.play("Count lines and characters of a.txt.", script, during=stop)


async def test_resume_prints_what_run_prints(world: World) -> None:
    """By the beginning of its id, with --json: a run's object and exit code; progress tells the whole task."""
    task_id = (await interrupted(world)).result.task_id
    async with ScriptedServer({"ExecutorStep": step, "MergeReport": merged("2 lines, 4 characters")}) as server:
        code, out, err = await artoo(world, "resume", task_id[:20], "--json", base_url=server.base_url)
    assert code == 0, err
    result = json.loads(out)
    assert (result["status"], result["task_id"], result["resumable"]) == ("success", task_id, False)
    assert "round 1 [1] do the quick one: · an answer\n" in err
    code, _, err = await artoo(world, "resume", task_id)
    assert code == 2 and "has ended, it was done, and cannot go on" in err


async def test_resume_takes_the_latest_that_can_go_on(world: World) -> None:
    """Without an id it goes on with the task that stopped, and with --events says all that stands of it."""
    first = await interrupted(world)
    async with ScriptedServer({"ExecutorStep": step, "MergeReport": merged("2 lines, 4 characters")}) as server:
        code, out, err = await artoo(world, "resume", "--events", base_url=server.base_url)
    assert code == 0, err
    kinds = [json.loads(line).get("kind") for line in out.splitlines()]
    assert kinds[:2] == ["TaskOpened", "UserRequest"] and kinds[-2:] == ["FinalResult", None]
    assert kinds.count("TaskResumed") == kinds.count("FinalResult") == 1
    assert "Interrupt" not in kinds
    assert json.loads(out.splitlines()[-1])["task_id"] == first.result.task_id


async def test_replay_says_whether_it_is_the_same(world: World) -> None:
    """A task's log, interruption and resumption included, replays to the same decisions, offline; exit code 0."""
    await interrupted(world)
    async with ScriptedServer({"ExecutorStep": step, "MergeReport": merged("2 lines, 4 characters")}) as server:
        await artoo(world, "resume", base_url=server.base_url)
    code, out, err = await artoo(world, "log", "replay")
    assert code == 0, err
    assert out.startswith("the same: ") and "1 decision" in out and "round 1: accept" in out
    code, out, _ = await artoo(world, "log", "replay", "--json")
    assert code == 0 and json.loads(out)["same"] is True


async def test_an_edited_log_differs_where_it_was_edited(world: World) -> None:
    """A verdict that was turned is found: round, role, and both versions of the field."""
    world.file("a.txt", "x\n")
    await world.play(
        "How many lines has a.txt?", {"Plan": plan(subtask("count")), "ExecutorStep": shell("wc -l < a.txt")}
    )
    log = the_log(world)
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    turned = [
        line.replace('"verdict":"pass"', '"verdict":"fail"') if '"kind":"SubTaskOutcome"' in line else line
        for line in lines
    ]
    log.write_text("".join(turned), encoding="utf-8")
    code, out, err = await artoo(world, "log", "replay", "--json")
    assert code == 1, err
    found = json.loads(out)["difference"]
    assert (found["round"], found["role"], found["kind"]) == (1, "agent_validator", "SubTaskOutcome")
    assert "verdict: the log says 'fail', replay says 'pass'" in found["text"]


async def test_a_damaged_log_says_where(world: World) -> None:
    """A line that is no message is named with file and line; a gap with its count and reason."""
    world.file("a.txt", "x\n")
    await world.play(
        "How many lines has a.txt?", {"Plan": plan(subtask("count")), "ExecutorStep": shell("wc -l < a.txt")}
    )
    log = the_log(world)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join([*lines[:5], b"{half\n", *lines[5:]]))
    code, _, err = await artoo(world, "log", "replay")
    assert code != 0 and "log.jsonl, line 6" in err
    log.write_bytes(b"".join([*lines[:5], b'{"gap":{"count":3,"reason":"disk full"}}\n', *lines[5:]]))
    for command in (("log", "replay"), ("resume", log.parent.name)):
        code, _, err = await artoo(world, *command)
        assert code == 2 and ("3 messages are missing" in err or "has ended" in err)


def the_log(world: World) -> Path:
    (log,) = tasks_directory(world.home).iterdir()
    return part_path(log, 0)
