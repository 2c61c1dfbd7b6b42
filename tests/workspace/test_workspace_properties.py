"""Random trees and random commands: the change set is exactly what commands did, seen from outside."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from laid_out import snapshot
from task_world import Task, World, make_world, overlay

from artoo.sandbox.backends.copying import CopyBackend
from artoo.workspace.commit import apply

NAMES = st.sampled_from(["a", "b", "c/d", "c/e/f", "g h", "c"])
COMMANDS = st.lists(
    st.one_of(
        st.builds("mkdir -p '{}'".format, NAMES),
        st.builds("mkdir -p $(dirname '{0}'); echo {1} > '{0}'".format, NAMES, st.integers(0, 3)),
        st.builds("echo more >> '{}'".format, NAMES),
        st.builds("rm -rf '{}'".format, NAMES),
        st.builds("rm -rf '{0}'; mkdir -p '{0}'".format, NAMES),
        st.builds("mv -T '{}' '{}'".format, NAMES, NAMES),
        st.builds("cp -rT '{}' '{}'".format, NAMES, NAMES),
        st.builds("ln -sfT '{}' '{}'".format, NAMES, NAMES),
        st.builds("ln -fT '{}' '{}'".format, NAMES, NAMES),
        st.builds("chmod {} '{}'".format, st.sampled_from(["700", "755", "644"]), NAMES),
        st.builds("touch -d @{} '{}'".format, st.integers(1, 5), NAMES),
    ),
    max_size=6,
)


def run(world: World, before: list[str], commands: list[str]) -> None:
    """Compare a project in which the commands ran with one to which the change set was applied."""
    script = "; ".join(f"{{ {one}; }} 2>/dev/null" for one in before) or "true"
    subprocess.run(("bash", "-c", script), cwd=world.project, check=False)

    async def work() -> dict[str, tuple[object, ...]]:
        async with world.task() as task:
            wanted = await _shown(task, "true", world)
            for command in commands:
                wanted = await _shown(task, f"{{ {command}; }} 2>/dev/null || true", world)
            return wanted

    wanted = asyncio.run(work())
    found = world.change_set()
    assert not found.conflicts
    report = apply(found.effects, (), task_id="t", undo_home=world.artoo_home / "undo")
    assert report.applied, report.conflicts
    assert snapshot(world.project, times=True) == wanted
    assert world.change_set().empty


async def _shown(task: Task, script: str, world: World) -> dict[str, tuple[object, ...]]:
    """Run a script, and return the project as commands see it: from a copy that one of them makes."""
    mark = await task.workspace.mark()
    await task.says(script)
    await task.workspace.changes_since(mark)
    await task.says("rm -rf $TMPDIR/shown /tmp/shown; cp -a . ${TMPDIR:-/tmp}/shown")
    return snapshot(world.directory().scratch / "shown", times=True)


@pytest.mark.parametrize("examples", [4, pytest.param(100, marks=pytest.mark.torture)])
def test_the_change_set_is_what_commands_did(examples: int) -> None:
    """Applied to the user's files it gives what the commands saw, and then there is nothing left."""
    deep = settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    deep(given(before=COMMANDS, commands=COMMANDS)(check))()


def check(before: list[str], commands: list[str]) -> None:
    """Run the commands with both backends."""
    for backend in (overlay(), CopyBackend("landlock")):
        place = Path(tempfile.mkdtemp(prefix="artoo-random-"))
        try:
            run(make_world(place, backend), before, commands)
        finally:
            shutil.rmtree(place)
