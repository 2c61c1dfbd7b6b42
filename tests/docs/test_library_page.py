"""The examples of docs/library.md, run one after the other against a scripted server."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from artoo.testing import Asked, Reply, ScriptedServer, with_body

PAGE = Path(__file__).parents[2] / "docs" / "library.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COUNT = "grep -c , people.csv"
COMMANDS = {
    "How many people are in people.csv?": _COUNT,
    "Who is the oldest in people.csv?": "sort -t, -k2n people.csv | tail -1",
    "Write the names in people.csv, sorted, to names.txt": "cut -d, -f1 people.csv | sort | tee names.txt",
    "Replace colour by color in notes.txt": "sed -i s/colour/color/ notes.txt; cat notes.txt",
    "Replace color by colour in notes.txt": "sed -i s/color/colour/ notes.txt; cat notes.txt",
}
"""What the scripted model does about each request of the page."""

PERSON = {"value": {"name": "Alan", "age": 41}}
ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}
PRINTED = ["3", "checked", "the request is empty; say what is wanted", "3", "name='Alan' age=41 judged", "checked",
           "notes.txt", "applied", "discarded", "2 How many people", "words: str", "too slow", "17.0", "4",
           "shell ok"]  # fmt: skip


def request_of(asked: Asked) -> str:
    """The request alone: memory speaks of others too."""
    return asked.user.rpartition("Request:\n")[2].partition("\n")[0]


def plan(asked: Asked) -> dict[str, object]:
    names = {"How warm is it in the attic?": "room_temperature", "How many lamps are in stock?": "in_stock"}
    name = names.get(request_of(asked), "shell")
    return {"subtasks": [{"intent": "do it", "tool": name, "success_criteria": [ANSWERED]}]}


def understood(asked: Asked) -> dict[str, object]:
    return {"task_id": "oldest", "intent": "Who is the oldest in people.csv?"}


def step(asked: Asked) -> Reply | dict[str, object]:
    if request_of(asked) == "How warm is it in the attic?":
        return {"tool": "room_temperature", "input": "attic", "is_final": True}
    if request_of(asked) == "How many lamps are in stock?":
        return {"tool": "in_stock", "input": "lamp", "is_final": True}
    command = next(command for request, command in COMMANDS.items() if request in asked.user)
    return with_body({"tool": "shell", "is_final": True}, command)


async def run(block: str, names: dict[str, object]) -> None:
    """Runs one example: in this loop where it awaits, else in a thread, where none runs."""
    code = compile(block, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        await cast("asyncio.Future[None]", eval(code, names))
    else:
        await asyncio.to_thread(exec, code, names)


def test_the_examples_of_the_page_type_check(tmp_path: Path) -> None:
    """As an editor shows them to whoever copies them: the package says that it is typed."""
    lines = ["from __future__ import annotations", "from artoo import Artoo, RunOptions, tool"]
    for number, block in enumerate(_BLOCK.findall(PAGE.read_text(encoding="utf-8"))):
        lines += [f"async def example_{number}() -> None:", *(f"    {line}" for line in block.splitlines())]
    (tmp_path / "page.py").write_text("\n".join(lines), encoding="utf-8")
    settings = {"pythonVersion": "3.11", "extraPaths": [str(PAGE.parents[1] / "src")]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


async def test_the_examples_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each does what the page says, against the public names alone."""
    project = tmp_path / "home" / "project"
    project.mkdir(parents=True)
    (project / "people.csv").write_text("Ada,36\nAlan,41\nGrace,39\n")
    (project / "notes.txt").write_text("the colour of it\n")
    monkeypatch.chdir(project)
    for name in ("BRAIN", "TOOL", "OPENAI"):
        for key in ("API_KEY", "BASE_URL", "MODEL"):
            monkeypatch.delenv(f"{name}_{key}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path / "artoo"))
    script = {"Plan": plan, "TaskSpec": understood, "ExecutorStep": step, "StructuredResult": PERSON}
    async with ScriptedServer(script) as server:  # pyright: ignore[reportArgumentType]
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_MODEL", "scripted")
        names: dict[str, object] = {"__name__": "page"}
        for block in _BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            await run(block, names)
    printed = capsys.readouterr().out
    place = 0
    for expected in PRINTED:
        found = printed.find(expected, place)
        assert found >= 0, f"{expected!r} was not printed after {printed[:place]!r}; next is {printed[place:]!r}"
        place = found + len(expected)
