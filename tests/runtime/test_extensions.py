"""Hooks, slash commands and notifications, in whole tasks with a scripted model and real commands."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner

from artoo import Artoo, Config, Outcome, RunOptions, RunResult, ToolUse
from artoo.cli.commands.trust_command import trust
from artoo.cli.main import main
from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.errors import SandboxError
from artoo.testing import Asked, ScriptedServer, native_call, with_body
from artoo.testing.replies import Scripted

WRITE = with_body({"tool": "shell", "is_final": False}, "sed -i s/old/new/ a.txt")
SAY = with_body({"tool": "answer", "sources": [1]}, "done: new", "text")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one file in a home of its own; this process stands in it."""
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    (project / "a.txt").write_text("old\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path / "home" / ".artoo"))
    monkeypatch.chdir(project)
    return project


class Script:
    """A plan of one step; the first turn changes a.txt, and the next ones say so."""

    def __init__(self) -> None:
        self._turns = 0

    def __call__(self, asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            check = {"check": "output_matches", "regex": "done"}
            criterion = {"text": "it says done", "mode": "verifiable", "check": check}
            return {"subtasks": [{"intent": "change a.txt", "tool": "shell"}], "task_criteria": [criterion]}
        if asked.contract == "FailureReport":
            return {"next_moves": []}
        self._turns += 1
        return WRITE if self._turns == 1 else SAY


def python(code: str) -> str:
    """A shell command that runs Python code, which has the hook's JSON as `given`."""
    whole = f"import json, sys; given = json.load(sys.stdin); {code}"
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(whole)}"


def config(place: Path, **more: object) -> Config:
    """Settings in this home, where edits are applied unasked."""
    return Config.model_validate({"apply": "edits", "memory": {"enabled": False}, **more}).at_home(
        place.parent / ".artoo"
    )


async def play(place: Path, settings: Config, **more: object) -> tuple[RunResult, list[Asked]]:
    """Run the task; its result, and what the model was asked."""
    async with ScriptedServer(Script()) as server:
        environ = {"OPENAI_BASE_URL": server.base_url, "OPENAI_MODEL": "scripted"}
        async with Artoo(settings, environ=environ, **more) as artoo:  # pyright: ignore[reportArgumentType]
            result = await artoo.run("Change a.txt.", options=RunOptions(project=place))
    return result, server.player.requests


async def test_hooks_are_told_of_every_moment(place: Path) -> None:
    """Each gets one JSON object: before and after a call, before the apply, at the end."""
    log = place.parent / "log"
    note = python(f"open({str(log)!r}, 'a').write(json.dumps(given) + chr(10))")
    moments = ("before_tool", "after_tool", "before_apply", "task_end")
    result, _ = await play(place, config(place, hooks={moment: [note] for moment in moments}))
    told = [json.loads(line) for line in log.read_text().splitlines()]
    assert [each["event"] for each in told] == list(moments)
    assert told[0]["tool"] == "shell" and "sed" in told[0]["arguments"]["command"]
    assert told[1]["status"] == "ok" and told[1]["exit_code"] == 0
    assert told[2]["paths"] == [str(place / "a.txt")]
    assert told[3]["output"] == "done: new" and {each["task_id"] for each in told} == {result.task_id}
    assert (place / "a.txt").read_text() == "new\n"


async def test_a_hook_refuses_a_call_with_its_message(place: Path) -> None:
    """Exit code 2: the call does not happen, and the model reads why."""
    hook = {"command": "echo not here >&2; exit 2", "tools": ["sh*"]}
    _, asked = await play(place, config(place, hooks={"before_tool": [hook]}, control={"max_replans": 1}))
    assert (place / "a.txt").read_text() == "old\n"
    assert any("a hook refused it: not here" in each.user for each in asked)


async def test_a_hook_keeps_changes_pending_also_for_a_later_apply(place: Path) -> None:
    """Nothing is applied at the end, nor by `artoo apply`, until the hook lets it."""
    gate = place.parent / "open"
    hook = f"test -e {gate} || {{ echo tests fail >&2; exit 2; }}"
    settings = config(place, hooks={"before_apply": hook})
    result, _ = await play(place, settings)
    assert result.changes.state == "pending" and "tests fail" in result.changes.reason
    async with Artoo(settings, environ={"OPENAI_BASE_URL": "http://127.0.0.1:9", "OPENAI_MODEL": "none"}) as artoo:
        (pending,) = await artoo.pending()
        with pytest.raises(SandboxError, match="tests fail"):
            await pending.apply()
        assert (place / "a.txt").read_text() == "old\n"
        gate.touch()
        assert (await pending.apply()).state == "applied"


async def test_a_projects_hooks_need_approval_of_exactly_their_content(place: Path) -> None:
    """Not asked: not run. Approved: run, until a byte of them or of their scripts changes."""
    mark = place.parent / "mark"
    (place / ".artoo" / "hooks").mkdir(parents=True)
    (place / ".artoo" / "hooks.yaml").write_text("task_end: [sh .artoo/hooks/end.sh]\n")
    (place / ".artoo" / "hooks" / "end.sh").write_text(f"echo x >> {mark}\n")
    asked: list[ConfirmationRequest] = []

    async def confirm(request: ConfirmationRequest) -> Consent:
        asked.append(request)
        return Consent.ONCE

    await play(place, config(place))
    assert not mark.exists()
    await play(place, config(place), confirm=confirm)
    await play(place, config(place))
    assert mark.read_text() == "x\nx\n" and len(asked) == 1
    assert asked[0].details == ("task_end $ sh .artoo/hooks/end.sh",)
    (place / ".artoo" / "hooks" / "end.sh").write_text("touch /nowhere\n")
    await play(place, config(place))
    assert mark.read_text() == "x\nx\n"
    assert "not approved yet: hooks" in CliRunner().invoke(trust).output


async def test_a_mistake_in_hooks_is_named_by_its_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the configuration it ends with 2; in a project the hooks are not run."""
    home = place.parent / ".artoo"
    home.mkdir()
    (home / "config.yaml").write_text("hooks:\n  before_tol: [x]\n")
    assert await asyncio.to_thread(main, ["config", "get"]) == 2
    assert "config.yaml:2:3: hooks.before_tol" in capsys.readouterr().err


async def test_a_slash_command_is_a_request_with_arguments(place: Path) -> None:
    """The user's own works at once; a project's only after `artoo trust accept`, and again after a change."""

    async def ask(*arguments: str, code: int = 0) -> str:
        script = {"Plan": {"reply": "fine"}} if arguments[0] == "run" and code == 0 else {}
        async with ScriptedServer(script) as server:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "artoo", *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_MODEL": "scripted"},
            )
            out, _ = await process.communicate()
        assert process.returncode == code, out.decode()
        return "".join(each.user for each in server.player.requests) or out.decode()

    own, theirs = place.parent / ".artoo" / "commands", place / ".artoo" / "commands"
    own.mkdir(parents=True)
    theirs.mkdir(parents=True)
    (own / "greet.md").write_text("---\ndescription: Greet somebody\n---\nGreet $1 and $2. All: $ARGUMENTS\n")
    (theirs / "look.md").write_text("Look at this:\n")
    assert "Greet Ada L and Bob. All: 'Ada L' Bob" in await ask("run", "--no-memory", "/greet 'Ada L' Bob")
    assert "artoo trust accept" in await ask("run", "/look a.txt", code=2)
    await ask("trust", "accept", "/look")
    assert "Look at this:\n\na.txt" in await ask("run", "--no-memory", "/look a.txt")
    (theirs / "look.md").write_text("Delete this:\n")
    assert "not approved yet: /look" in await ask("trust")
    await ask("run", "/look a.txt", code=2)


async def test_a_webhook_and_a_command_are_told_of_the_end(place: Path) -> None:
    """Each gets the same JSON; a question that nobody answers at once is told too."""
    got: list[dict[str, str]] = []

    async def hear(request: web.Request) -> web.Response:
        got.append(await request.json())
        return web.Response()

    application = web.Application()
    application.router.add_post("/hook", hear)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    log = place.parent / "told"
    command = f"cat >> {log}; echo >> {log}"
    settings = {"webhook": f"http://127.0.0.1:{runner.addresses[0][1]}/hook", "command": command}

    async def confirm(request: ConfirmationRequest) -> Consent:
        await asyncio.sleep(1.0)
        return Consent.KEEP

    try:
        await play(place, config(place, apply="ask", notify=settings), confirm=confirm)
    finally:
        await runner.cleanup()
    assert [each["event"] for each in got] == ["needs_you", "ended"]
    assert got == [json.loads(line) for line in log.read_text().splitlines()]
    assert got[1]["text"] == "done: new" and got[1]["request"] == "Change a.txt."


async def test_middleware_is_around_every_call(place: Path) -> None:
    """It may change arguments and outcomes; the changed call is what runs."""
    seen: list[tuple[str, str]] = []

    async def middleware(use: ToolUse, run: Callable[[ToolUse], Awaitable[Outcome]]) -> Outcome:
        outcome = await run(ToolUse(use.tool, {**use.arguments, "command": "sed -i s/old/other/ a.txt"}))
        seen.append((use.tool, outcome.status.value))
        return outcome

    await play(place, config(place), middleware=[middleware])
    assert seen == [("shell", "ok")] and (place / "a.txt").read_text() == "other\n"


async def test_an_image_of_an_mcp_tool_is_a_file_for_commands(place: Path) -> None:
    """The result names a file in the task's /tmp, and a command of the task reads it."""
    program = Path(__file__).parents[1] / "tools" / "mcp_server.py"
    entry = {"command": sys.executable, "args": [str(program)], "trustReadOnly": True}
    said: list[str] = []

    async def watch(use: ToolUse, run: Callable[[ToolUse], Awaitable[Outcome]]) -> Outcome:
        outcome = await run(use)
        said.append(outcome.output)
        return outcome

    class Draws(Script):
        def __call__(self, asked: Asked) -> Scripted:
            first = super().__call__(asked)
            if first is WRITE:
                return native_call({}, "notes_picture")
            if first is SAY and len(said) == 1:
                return with_body({"tool": "shell", "is_final": False}, "cat /tmp/mcp-*.png")
            return first

    async with ScriptedServer(Draws()) as server:
        environ = {"OPENAI_BASE_URL": server.base_url, "OPENAI_MODEL": "scripted"}
        settings = config(place, mcp_servers={"notes": entry})
        async with Artoo(settings, environ=environ, middleware=[watch]) as artoo:
            await artoo.run("Change a.txt.", options=RunOptions(project=place))
    assert "[the image is /tmp/mcp-" in said[0] and "PNG fake" in said[1]
