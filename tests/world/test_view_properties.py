"""A view with commands and folds is, for whoever looks into it, the plain tree on which the same was done."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sandbox_world import World, require_tier
from view_world import bash, overlay_views, place_of

from artoo.ports.sandbox import Limits
from artoo.ports.world import Program
from artoo.world.scan import scan
from artoo.world.transaction import apply_effects

_NAMES = ["a", "b", "d", "d/a", "d/e", "d/e/f", "d/e/g", "x y", "ä"]
_PATHS = st.sampled_from(_NAMES)
_TEXTS = st.sampled_from(["", "one\n", "two lines\nof text\n", "x" * 5000])
_MODES = st.sampled_from(["600", "644", "755", "700", "444", "000"])


def _one(template: str) -> st.SearchStrategy[str]:
    return _PATHS.map(lambda path: template.format(f"'./{path}'"))


def _two(template: str) -> st.SearchStrategy[str]:
    """About two paths, the second not inside the first."""
    pairs = st.tuples(_PATHS, _PATHS).filter(lambda pair: not f"{pair[1]}/".startswith(f"{pair[0]}/"))
    return pairs.map(lambda pair: template.format(f"'./{pair[0]}'", f"'./{pair[1]}'"))


_OPERATIONS = st.one_of(
    st.tuples(_PATHS, _TEXTS).map(lambda pair: f"printf '%s' '{pair[1]}' > './{pair[0]}'"),
    st.tuples(_PATHS, _TEXTS).map(lambda pair: f"printf '%s' '{pair[1]}' >> './{pair[0]}'"),
    _one("rm -rf {}"),
    _one("rm {}"),
    _one("rmdir {}"),
    _one("mkdir -p {}"),
    _one("rm -rf {0}; mkdir -p {0}; echo in > {0}/in"),
    _one("touch -h -d @1000000 {}"),
    _one("truncate -s 3 {}"),
    _one('python3 -c \'import os,sys; os.setxattr(sys.argv[1], "user.note", b"1")\' {}'),
    _two("mv -T {} {}"),
    _two("cp -a {} {}"),
    _two("ln -sfn {} {}"),
    st.tuples(_MODES, _PATHS).map(lambda pair: f"chmod {pair[0]} './{pair[1]}'"),
)
_SCRIPTS = st.lists(_OPERATIONS, min_size=1, max_size=4)
_TREES = st.lists(_OPERATIONS, min_size=1, max_size=8)
_SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much)
_SMALL = settings(max_examples=15, deadline=None, database=None, suppress_health_check=_SLOW)
_DEEP = settings(max_examples=500, deadline=None, database=None, suppress_health_check=_SLOW)

_DUMP = """
import hashlib, json, os, stat, sys
found = {}
for directory, names, files in os.walk(sys.argv[1]):
    for name in [*names, *files]:
        path = os.path.join(directory, name)
        seen = os.lstat(path)
        entry = [stat.S_IFMT(seen.st_mode), stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid]
        if stat.S_ISREG(seen.st_mode):
            entry += [hashlib.sha256(open(path, "rb").read()).hexdigest(), seen.st_mtime_ns == 1000000 * 10**9]
        if stat.S_ISLNK(seen.st_mode):
            entry = [entry[0], os.readlink(path)]
        else:
            entry.append(sorted(x for x in os.listxattr(path) if x.startswith("user.") and "overlay" not in x))
        found[os.path.relpath(path, sys.argv[1])] = entry
print(json.dumps(found, sort_keys=True))
"""
"""Prints all that can be seen of a tree."""


def _plain(place: Path, script: str) -> str:
    done = subprocess.run(
        ["bash", "-c", script], cwd=place, capture_output=True, check=False, timeout=10, text=True
    )
    return done.stdout


def _dumped(place: Path) -> str:
    done = subprocess.run(
        ["python3", "-c", _DUMP, "."], cwd=place, capture_output=True, check=True, timeout=10, text=True
    )
    return done.stdout


def check(tree: Sequence[str], scripts: Sequence[Sequence[str]], tier: str) -> None:
    require_tier(tier)
    with tempfile.TemporaryDirectory() as place:
        home = Path(place).resolve() / "home"
        world = World(home)
        world.project.mkdir(parents=True)
        _plain(world.project, "\n".join(tree))
        reference = Path(place).resolve() / "reference"
        subprocess.run(["cp", "-a", "-T", world.project, reference], check=True)
        asyncio.run(_check(world, reference, ["\n".join(script) for script in scripts], tier))
        subprocess.run(["chmod", "-R", "u+rwX", place], check=True)


async def _check(world: World, reference: Path, scripts: Sequence[str], tier: str) -> None:
    before = await asyncio.to_thread(_dumped, world.project)
    view = overlay_views(tier, world)("task-1", world.roots)
    for script in scripts:
        await bash(view, script)
        await asyncio.to_thread(_plain, reference, script)
    wanted = await asyncio.to_thread(_dumped, reference)
    run = await view.run(Program(("python3", "-c", _DUMP, "."), limits=Limits(kept_bytes=10**6)))
    assert run.stdout.text == wanted, run
    await view.close()
    assert await asyncio.to_thread(_dumped, world.project) == before
    effects = scan(place_of(world).trunk(), 1000)
    report = apply_effects(effects, task_id="task-1", undo_home=world.artoo_home / "undo")
    assert report.applied, report
    assert await asyncio.to_thread(_dumped, world.project) == wanted


@given(tree=_TREES, scripts=st.lists(_SCRIPTS, min_size=1, max_size=4))
@_SMALL
def test_a_view_is_the_plain_tree(tree: Sequence[str], scripts: Sequence[Sequence[str]]) -> None:
    """Seen by a last command, and settled on the real files: both are what the commands make of a copy."""
    check(tree, scripts, "bubblewrap")


@pytest.mark.torture
@pytest.mark.parametrize("tier", ["bubblewrap", "namespaces"])
@given(tree=_TREES, scripts=st.lists(_SCRIPTS, min_size=1, max_size=6))
@_DEEP
def test_a_view_is_the_plain_tree_at_depth(
    tier: str, tree: Sequence[str], scripts: Sequence[Sequence[str]]
) -> None:
    """The same, over many more."""
    check(tree, scripts, tier)
