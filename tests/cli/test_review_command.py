"""`artoo review` and the GitHub Action's step, on a real repository with a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from artoo.testing import Asked, ScriptedServer, with_body
from artoo.testing.replies import Scripted

ROOT = Path(__file__).parents[2]
ANSWER = """\
- **major** `pay.py:2` The discount is added, so totals are too high; subtract it.
critical other.py:1 This file is not in the change.
"""
FOUND = [
    {"path": "pay.py", "line": 2, "severity": "major", "text": ANSWER.splitlines()[0].partition("` ")[2]},
]


def git(*arguments: str) -> bytes:
    """Run git in the current directory, and return what it printed."""
    names = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    return subprocess.run(("git", *names, *arguments), check=True, capture_output=True).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a branch that has one commit more than main."""
    place = tmp_path / "home" / "project"
    place.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ARTOO_HOME", str(tmp_path / "home" / ".artoo"))
    monkeypatch.chdir(place)
    git("init")
    (place / "pay.py").write_text("def total(price, discount):\n    return price - discount\n")
    git("add", ".")
    git("commit", "-m", "Add totals")
    git("checkout", "-b", "work")
    (place / "pay.py").write_text("def total(price, discount):\n    return price + discount\n")
    git("commit", "-am", "Change totals")
    return place


def reviews(asked: Asked) -> Scripted:
    """A reviewer that looks at the file, and answers with JSON."""
    if asked.contract == "Plan":
        return {"subtasks": [{"intent": "review", "tool": "shell"}], "task_criteria": ["defects are named"]}
    if asked.contract == "ValidationReport":
        return {"verdicts": [{"number": 1, "quote": "pay.py", "verdict": "pass"}], "what_to_do": ""}
    assert "-    return price - discount" in asked.user
    if "cat pay.py" not in str(asked.body["messages"]):
        return with_body({"tool": "shell", "is_final": False}, "cat pay.py")
    return with_body({"tool": "answer", "sources": [1]}, ANSWER, "text")


async def ran(server: ScriptedServer, *command: str, **more: str) -> tuple[int, str, str]:
    """Run a command with the scripted model. Returns exit code and both outputs."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_MODEL": "scripted",
        "OPENAI_API_KEY": "none",
        "PATH": path,
    }
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environ, **more},
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_a_branch_is_reviewed(repository: Path) -> None:
    """Findings are shown by severity; one about a file that the change does not touch is left out, and said."""
    async with ScriptedServer(reviews) as server:
        artoo = (sys.executable, "-m", "artoo", "review")
        code, out, err = await ran(server, *artoo)
        assert code == 0, err
        assert "everything since main: 1 files, 1 findings" in out
        assert "- **major** `pay.py:2` The discount is added, so totals are too high" in out
        assert "left out, other.py is not in the change" in err
        assert (await ran(server, *artoo, "main...HEAD", "--fail-on", "major"))[0] == 1
        assert (await ran(server, *artoo, "main...HEAD", "--fail-on", "critical"))[0] == 0
        code, out, _ = await ran(server, *artoo, "--json", "HEAD~1")
        assert json.loads(out)["findings"] == FOUND
        assert (await ran(server, *artoo, "nowhere..HEAD"))[0] == 2
        assert (await ran(server, *artoo, "HEAD"))[1].startswith("Nothing has changed.")


async def test_a_diff_from_a_file_is_reviewed(repository: Path) -> None:
    (repository.parent / "change.diff").write_bytes(git("diff", "main", "HEAD"))
    async with ScriptedServer(reviews) as server:
        artoo = (sys.executable, "-m", "artoo", "review", "--diff", "../change.diff")
        code, out, err = await ran(server, *artoo)
    assert code == 0 and "Review of the diff: 1 files, 1 findings" in out, err


async def test_the_github_actions_step_reviews_and_fails(repository: Path) -> None:
    """The step that action.yml runs: summary, output and exit code."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["steps"][-1]["run"].endswith('/.ci/action"')
    summary, output = repository.parent / "summary", repository.parent / "output"
    known = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(output), "ACTION_BASE": "main"}
    async with ScriptedServer(reviews) as server:
        step = ("bash", str(ROOT / ".ci" / "action"))
        budget = {"ACTION_BUDGET": "calls=20", "ACTION_FAIL_ON": "major"}
        code, out, err = await ran(server, *step, **known, **budget)
    assert code == 1, err
    assert "### artoo: 1 findings" in summary.read_text() and "pay.py:2" in out
    assert '"severity": "major"' in output.read_text()
