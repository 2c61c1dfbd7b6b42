"""A task whose log cannot be written: nothing of it takes effect, inside or outside, and the person hears why."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from artoo import Artoo, Config, RunOptions, tool
from artoo.contracts.settling import Settled
from artoo.runtime.changes.find_pending import pendings
from artoo.tasklog.layout import tasks_directory
from artoo.testing import ScriptedModel, with_body
from artoo.testing.script import Entry


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home" / "project"
    place.mkdir(parents=True)
    (place / "keep.txt").write_text("kept\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return place


@pytest.fixture
def config(project: Path) -> Config:
    return Config(workspace=project.parent / "workspace").at_home(project.parent / ".artoo")


@pytest.fixture
def no_room(config: Config) -> Iterator[Path]:
    """The task logs lie on a file system of their own, which is full. Gives the file that fills it."""
    place = tasks_directory(config.home)
    place.mkdir(parents=True)
    mount = ("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place))
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield filled(place / ".filled")
    subprocess.run(("umount", "-l", str(place)), check=True)


def filled(path: Path) -> Path:
    """Takes all the room there is."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while os.write(descriptor, b"0" * 4096):
            pass
    except OSError:
        return path
    finally:
        os.close(descriptor)
    raise AssertionError("a file system without an end")


def there(project: Path) -> list[str]:
    return sorted(path.name for path in project.iterdir())


def make_room(filling: Path) -> None:
    filling.unlink()


DONE = {"text": "it says something", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}


def acting(command: str) -> dict[str, Entry]:
    return {
        "Plan": {"subtasks": [{"intent": "do it", "tool": "shell", "success_criteria": [DONE]}]},
        "ExecutorStep": with_body({"tool": "shell", "is_final": True}, command),
    }


async def changes_of(config: Config, project: Path, command: str) -> Settled:
    with ScriptedModel(acting(command)) as model:
        async with Artoo(config, environ={}, model=model) as artoo:
            options = RunOptions(project=project, allow=("delete keep.txt",))
            return (await artoo.run("do it", options=options)).changes


@pytest.mark.parametrize("command", ["rm keep.txt; echo gone", "echo new > new.txt; echo made"])
async def test_nothing_is_applied_that_is_not_logged(
    config: Config, project: Path, no_room: Path, command: str
) -> None:
    """Neither what a policy allows nor what is silent: it waits, with the reason, and can be applied later."""
    changes = await changes_of(config, project, command)
    assert changes.state == "pending" and "No space left" in changes.reason, changes
    assert there(project) == ["keep.txt"]
    assert len(pendings(config)) == 1


async def test_a_log_that_can_be_written_again_lets_it_take_effect(
    config: Config, project: Path, no_room: Path
) -> None:
    """Once there is room, the log says what is missing from it, and acts are applied as ever."""
    make_room(no_room)
    changes = await changes_of(config, project, "rm keep.txt; echo gone")
    assert changes.state == "applied" and there(project) == []


async def test_nothing_goes_out_that_is_not_logged(config: Config, project: Path, no_room: Path) -> None:
    """A tool of the person's own, which reaches wherever it likes, is not called."""
    called: list[str] = []

    @tool
    def send(text: str) -> str:
        """send a text"""
        called.append(text)
        return "sent"

    script: dict[str, Entry] = {
        "Plan": {"subtasks": [{"intent": "send it", "tool": "send", "success_criteria": [DONE]}]},
        "ExecutorStep": [
            {"tool": "send", "input": "hello", "is_final": True},
            with_body({"tool": "shell", "is_final": True}, "echo it was not sent"),
        ],
    }
    with ScriptedModel(script) as model:
        async with Artoo(config, environ={}, model=model, tools=[send]) as artoo:
            await artoo.run("send hello", options=RunOptions(project=project))
        assert "nothing takes effect that is not logged first" in model.player.requests[-1].user
    assert called == [], no_room
