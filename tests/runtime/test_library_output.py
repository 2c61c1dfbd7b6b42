"""What a caller sees of a command while it runs."""

from __future__ import annotations

from pathlib import Path

from artoo import Artoo, Config, RunOptions
from artoo.contracts.execution import ToolCalled, ToolStarted
from artoo.ports.printing import Printed
from artoo.testing import ScriptedModel, with_body

ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}
COMMAND = "echo MY_TOKEN is $((6 * 7))-of-the-wait; printf 'half a line' >&2; sleep 2; uname"


async def test_the_last_lines_of_a_running_command_are_told(tmp_path: Path) -> None:
    """Both streams while it runs, of the call that the stream names, without secrets; none of it is a message."""
    project = tmp_path / "project"
    project.mkdir()
    script = {
        "Plan": {"subtasks": [{"intent": "wait", "tool": "shell", "success_criteria": [ANSWERED]}]},
        "ExecutorStep": with_body({"tool": "shell", "is_final": True}, COMMAND),
    }
    config = Config(workspace=tmp_path / "workspace").at_home(tmp_path / "home")
    told: list[Printed] = []
    environ = {"MY_TOKEN": "42-of-the-wait"}
    with ScriptedModel(script) as model:
        async with Artoo(config, environ=environ, model=model, on_output=told.append) as artoo:
            stream = artoo.stream("Wait a little", options=RunOptions(project=project))
            said = [envelope async for envelope in stream]
    assert told, "nothing was told while the command ran for two seconds"
    kinds = [type(envelope.payload) for envelope in said]
    started = said[kinds.index(ToolStarted)]
    assert isinstance(started.payload, ToolStarted)
    assert {(one.task_id, one.act) for one in told} == {(started.task_id, started.payload.act)}
    assert kinds[kinds.index(ToolStarted) + 1] is ToolCalled
    assert sorted(told[0].lines) == ["MY_TOKEN is [redacted]", "half a line"]  # two pipes have no common order
