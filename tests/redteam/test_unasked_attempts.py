"""Nothing that an adversary found takes effect unasked, or is readable, with an overlay and in copies."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from unasked_attempts import BROUGHT_BY_GIT, LOADED_IN_PLACE, REPOSITORY, STARTED_BY_GIT, TOKENS, Attempt

sys.path.insert(0, str(Path(__file__).parents[1] / "workspace"))
from task_world import World, make_world, overlay

from artoo.contracts.settling import ApplyMode, Ending, Settled
from artoo.ports.workspace import Command, Ended
from artoo.sandbox.backends.copying import CopyBackend
from artoo.tools.settlement.settler import Settler

_WHO = {f"GIT_{role}_{what}": "u@example.invalid" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture(params=["overlay", "copy"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A home of either kind, with settings of git in the environment."""
    made = make_world(tmp_path, overlay() if request.param == "overlay" else CopyBackend("landlock"))
    for name, value in {**_WHO, "HOME": str(made.home), "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)
    return made


def _user_runs(world: World, script: str) -> int:
    argv = ["bash", "-c", script]
    return subprocess.run(argv, cwd=world.project, env=os.environ, capture_output=True, check=False).returncode


async def _task_runs(world: World, script: str) -> tuple[Ended, Settled]:
    """Run a script as a task of its own, at whose end nobody is there to ask."""
    workspace = world.open()
    try:
        ended = await workspace.run(Command(("bash", "-ec", script)), 30)
    finally:
        await workspace.close()
    settler = Settler(workspace, world.artoo_home, mode=ApplyMode.NEW)
    return ended, await settler.settle(Ending(task_id="t", directive="accept"), None)


@pytest.mark.parametrize("attempt", [*LOADED_IN_PLACE, *STARTED_BY_GIT, *BROUGHT_BY_GIT], ids=lambda one: one.name)
def test_it_waits_for_approval(world: World, attempt: Attempt) -> None:
    """The task's changes are pending, and what the user does next finds nothing of them."""
    assert _user_runs(world, f"set -e\n{REPOSITORY if attempt.repository else ''}\n{attempt.setup}") == 0
    ended, settled = asyncio.run(_task_runs(world, attempt.task))
    assert ended.exit_code == 0, ended.stderr.text
    assert settled.state == "pending", settled
    assert _user_runs(world, attempt.damage) != 0


def test_tokens_in_settings_cannot_be_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in addresses of package indexes, nor among the programs of version managers, nor in variables."""
    for name, content in TOKENS:
        path = world.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    names = " ".join(f"~/{name}" for name, _ in TOKENS)
    monkeypatch.setenv("GOPROXY", "https://proxy.example.org/CANARY6/")
    monkeypatch.setenv("PIP_INDEX_URL", "https://pypi.org/simple")
    ended, _ = asyncio.run(_task_runs(world, f"cat {names} || true; env"))
    assert "CANARY" not in ended.stdout.text
    assert "PIP_INDEX_URL=https://pypi.org/simple" in ended.stdout.text


def test_a_pending_task_leaves_nothing_in_its_tmp(world: World) -> None:
    """What waits for approval may wait for weeks; the task's /tmp is not among it."""
    _, settled = asyncio.run(_task_runs(world, "head -c 1000000 /dev/zero > /tmp/big; mkdir .hidden"))
    assert settled.state == "pending"
    assert list(world.directory().scratch.iterdir()) == []


def test_a_commit_in_a_copy_arrives_where_overlays_work_too(world: World) -> None:
    """The workspace is opened as what it is, not as the best that the machine has by then."""
    assert _user_runs(world, f"set -e\n{REPOSITORY}") == 0
    _, settled = asyncio.run(_task_runs(world, "echo n > n.txt; git add n.txt; git commit -qm two"))
    assert settled.state == "applied", settled
    assert _user_runs(world, "git log -1 --format=%s | grep two && git diff --quiet HEAD") == 0
