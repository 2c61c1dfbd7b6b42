"""Properties over random trees and commands: drop is nothing, apply is the real thing, undo is the way back."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sandbox_snapshots import snapshot
from sandbox_world import Commands, World, first, require_tier

from artoo.world.undo import undo

_NAMES = ["a", "b", "d", "d/a", "d/e", "d/e/f", "x y", "ä"]
_PATHS = st.sampled_from(_NAMES)
_TEXTS = st.sampled_from(["", "one\n", "two lines\nof text\n", "x" * 5000])
_MODES = st.sampled_from(["600", "644", "755", "700", "444"])


def _one(template: str) -> st.SearchStrategy[str]:
    """A command about one path."""
    return _PATHS.map(lambda path: template.format(f"'./{path}'"))


def _write(operator: str) -> st.SearchStrategy[str]:
    return st.tuples(_PATHS, _TEXTS).map(lambda pair: f"printf '%s' '{pair[1]}' {operator} './{pair[0]}'")


def _two(template: str) -> st.SearchStrategy[str]:
    """A command about two paths, the second not inside the first: `cp` into itself depends on directory order."""
    pairs = st.tuples(_PATHS, _PATHS).filter(lambda pair: not f"{pair[1]}/".startswith(f"{pair[0]}/"))
    return pairs.map(lambda pair: template.format(f"'./{pair[0]}'", f"'./{pair[1]}'"))


_COMMANDS = st.one_of(
    _write(">"),
    _write(">>"),
    _one("rm -rf {}"),
    _one("rm {}"),
    _one("rmdir {}"),
    _one("mkdir -p {}"),
    _one("touch -h -d @1000000 {}"),
    _one("truncate -s 3 {}"),
    _two("mv -T {} {}"),
    _two("cp -a {} {}"),
    _two("ln -sfn {} {}"),
    st.tuples(_MODES, _PATHS).map(lambda pair: f"chmod {pair[0]} './{pair[1]}'"),
)
_SCRIPTS = st.lists(_COMMANDS, min_size=1, max_size=8)
_SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much)
_SMALL = settings(max_examples=60, deadline=None, database=None, suppress_health_check=_SLOW)
_DEEP = settings(max_examples=600, deadline=None, database=None, suppress_health_check=_SLOW)


def build(project: Path, commands: Sequence[str]) -> None:
    """A random tree: what a random script makes."""
    project.mkdir(parents=True, exist_ok=True)
    subprocess.run(["bash", "-c", "\n".join(commands)], cwd=project, capture_output=True, check=False, timeout=20)


def check(tree: Sequence[str], script: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place).resolve() / "home"
        world = World(home)
        build(world.project, tree)
        world.artoo_home.mkdir()
        reference = Path(place).resolve() / "reference"
        shutil.copytree(world.project, reference, symlinks=True, copy_function=_copy)
        asyncio.run(_check(world, reference, "\n".join(script)))


def _copy(source: str, target: str) -> None:
    subprocess.run(["cp", "-a", "-T", source, target], check=True)


async def _check(world: World, reference: Path, script: str) -> None:
    candidate = first("bubblewrap", world.artoo_home)
    sandbox = Commands(candidate.build(candidate.stage_homes), world.artoo_home)
    everything = snapshot(world.home, times=True, identity=True)
    before = snapshot(world.home, times=True)
    run = await sandbox.run(world.bash(script))
    run.drop()
    assert snapshot(world.home, times=True, identity=True) == everything

    run = await sandbox.run(world.bash(script))
    report = run.apply()
    assert report.applied, report
    await asyncio.to_thread(build, reference, [script])
    assert snapshot(world.project) == snapshot(reference)
    assert bool(run.changes) == (snapshot(world.home, times=True) != before)

    if run.changes:
        assert undo(world.artoo_home, "task-1").refused == ()
    assert snapshot(world.home, times=True) == before


@given(tree=_SCRIPTS, script=_SCRIPTS)
@_SMALL
def test_drop_apply_undo(tree: Sequence[str], script: Sequence[str]) -> None:
    """Drop leaves every bit; apply equals the run without a sandbox; undo gives the tree back."""
    require_tier("bubblewrap")
    check(tree, script)


@pytest.mark.torture
@given(tree=_SCRIPTS, script=_SCRIPTS)
@_DEEP
def test_drop_apply_undo_at_depth(tree: Sequence[str], script: Sequence[str]) -> None:
    """The same, over many more trees and commands."""
    require_tier("bubblewrap")
    check(tree, script)
