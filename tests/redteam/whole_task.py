"""Acts as one whole task: a scripted model that issues them, the real runtime, and nobody to ask unless said so."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from artoo import Artoo, Config, RunOptions
from artoo.contracts.execution import ToolCall, ToolCalled
from artoo.contracts.settling import ApplyMode
from artoo.contracts.solution import FinalResult
from artoo.ports.confirm import Confirm
from artoo.testing import Asked, Reply, ScriptedModel, with_body
from artoo.testing.replies import Scripted

END = "that was all"


@dataclass(frozen=True, slots=True)
class Acted:
    """What came of a task: its result, and the calls as they were recorded."""

    result: FinalResult
    calls: tuple[ToolCall, ...]

    @property
    def state(self) -> str:
        """What became of its changes."""
        return self.result.changes.state


@dataclass(frozen=True, slots=True)
class Person:
    """Whose files they are: the home, with artoo's own in it as in real life, and where the person stands."""

    home: Path
    project: Path

    @property
    def artoo_home(self) -> Path:
        """The default one."""
        return self.home / ".artoo"

    @property
    def config(self) -> Config:
        """The default configuration in this home."""
        return Config(workspace=self.home / "artoo_workspace").at_home(self.artoo_home)


async def acted(
    person: Person,
    steps: Sequence[Reply],
    *,
    confirm: Confirm | None = None,
    apply: ApplyMode = ApplyMode.NEW,
    allow: tuple[str, ...] = (),
    request: str = "Do it.",
) -> Acted:
    """Runs the steps as one task. Whatever became of each, the task says at last that it is done.

    It is accepted then, unless a person refused a call: the result says so.
    """
    left = deque([*steps, command(f"echo {END}", final=True)])

    def step(asked: Asked) -> Scripted:
        return left.popleft()

    calls: list[ToolCall] = []
    result: FinalResult | None = None
    options = RunOptions(project=person.project, apply=apply, allow=allow, memory=False)
    with ScriptedModel({"Plan": _plan(), "ExecutorStep": step}) as model:
        async with Artoo(person.config, environ={}, model=model, confirm=confirm) as artoo:
            async for envelope in artoo.stream(request, options=options):
                match envelope.payload:
                    case ToolCalled(call=call):
                        calls.append(call)
                    case FinalResult():
                        result = envelope.payload
                    case _:
                        continue
    refused = any(call.withheld_by == "person" for call in calls)
    ends = ("abandon", "refused_by_user") if refused else ("accept", None)
    assert result is not None and (result.directive, result.stopped_by) == ends, (result, calls)
    return Acted(result, tuple(calls))


def _plan() -> dict[str, object]:
    check = {"check": "output_matches", "regex": END}
    criterion = {"text": "it says so", "mode": "verifiable", "check": check}
    return {"subtasks": [{"intent": "do it", "tool": "shell", "success_criteria": [criterion]}]}


def command(text: str, *, final: bool = False) -> Reply:
    """A step that runs a shell command."""
    return with_body({"tool": "shell", "is_final": final}, text)


def written(path: str, text: str) -> Reply:
    """A step that writes a file."""
    return with_body({"tool": "write_file", "input": path, "is_final": False}, text, "text")


def read(path: str) -> Reply:
    """A step that reads a file."""
    return _tool("read_file", path)


def found(pattern: str) -> Reply:
    """A step that lists names."""
    return _tool("find_files", pattern)


def searched(query: str, path: str) -> Reply:
    """A step that looks for a text in files."""
    return _tool("search_text", json.dumps({"pattern": query, "path": path}))


def looked_up(query: str) -> Reply:
    """A step that searches the web."""
    return _tool("web_search", query)


def _tool(name: str, text: str) -> Reply:
    return Reply(json.dumps({"tool": name, "input": text, "is_final": False}))
