"""The edge of the sandbox, attacked from inside: nothing but the view can be written, nothing held beyond bounds.

Every attempt of `edge_attempts.py` runs in every tier, as root and as a plain user, also read-only.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from edge_attempts import BOUNDS, EDGE
from sandbox_world import Commands, World, first, require_tier

from artoo.contracts.changes import ChangeKind
from artoo.world import entry, steps
from artoo.world.choose import Candidate
from artoo.world.reasons import explain

_HERE = Path(__file__).parent
_PLAIN = 65534
_EVERYWHERE = ["bubblewrap", "bubblewrap+1", "bubblewrap+2", "bubblewrap+3", "namespaces", "landlock"]
"""Tiers, and further variants of one: laid ahead or by bubblewrap itself; root in a user namespace, or not."""

_DEVICES = {f"device {where}" for where in ("in the home", "in the project", "outside")}
_NOT_CLOSED = {("landlock", "root"): _DEVICES | {f"{name} (read-only)" for name in _DEVICES}}
"""Without a mount namespace nothing keeps root from reading a device that root has put among documents."""


@contextmanager
def _place() -> Generator[Path]:
    """A directory that no private /tmp covers, and that a plain user can reach."""
    private = (Path("/tmp"), Path("/var/tmp"))
    fit = [
        path
        for path in (_HERE.parents[1], Path("/opt"), Path("/srv"))
        if os.access(path, os.W_OK) and not any(path.is_relative_to(one) for one in private)
    ]
    if not fit:
        pytest.skip("these tests lie below a private /tmp, and no other place can be written")
    place = Path(tempfile.mkdtemp(prefix=".edge-", dir=fit[0]))
    try:
        place.chmod(0o755)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@functools.cache
def _got(tier: str, user: str, which: str) -> dict[str, str]:
    """What the attempts of one kind reached; skips when the tier does not work for this user."""
    library = next(path for path in sys.path if path.endswith("site-packages"))
    path = os.pathsep.join((str(_HERE), str(_HERE.parents[1] / "src"), library))
    with _place() as place:
        if user == "plain" and os.geteuid() == 0:
            os.chown(place, _PLAIN, _PLAIN)
        other = _PLAIN if user == "plain" and os.geteuid() == 0 else None
        done = subprocess.run(
            ("/usr/bin/python3", str(_HERE / "edge_victim.py"), tier, str(place), which),
            env={
                "PATH": os.defpath,
                "HOME": str(place / "home"),
                "PYTHONPATH": path,
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            check=False,
            timeout=400,
            user=other,
            group=other,
            extra_groups=None if other is None else (),
        )
    if done.returncode != 0:
        pytest.skip(f"the system's Python cannot run artoo here: {done.stderr[-300:]!r}")
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    if "problem" in found:
        problem = str(found["problem"])
        known = problem == "there is no such variant" or explain("bubblewrap", problem).cause != problem
        assert known, f"{tier} fails its self-test here for no reason that is known: {problem}"
        pytest.skip(f"{tier} does not work here for this user: {problem}")
    return found["got"]


def _users() -> list[str]:
    return ["root", "plain"] if os.geteuid() == 0 else ["plain"]


@pytest.mark.parametrize("tier", _EVERYWHERE)
@pytest.mark.parametrize("user", _users())
def test_nothing_gets_out(tier: str, user: str) -> None:
    """No file, pipe, socket, device, process or setting outside the view is written, read-only or not."""
    through = {name for name, said in _got(tier, user, "edge").items() if said}
    assert through - _NOT_CLOSED.get((tier, user), set()) == set(), len(EDGE)


@pytest.mark.parametrize("tier", ["bubblewrap", "namespaces"])
@pytest.mark.parametrize("user", _users())
def test_nothing_is_held_beyond_the_bounds(tier: str, user: str) -> None:
    """Memory, disk, paths and tasks count wherever they are held: without a name, without a process, hidden."""
    through = {name: said for name, said in _got(tier, user, "bounds").items() if said}
    assert through == {}, len(BOUNDS)


async def test_a_command_is_given_no_descriptor(any_overlay: Commands, world: World) -> None:
    """Nothing that artoo had open is open inside, in the command or in the first process."""
    run = await any_overlay.run(world.bash("cd /proc; echo self/fd/* 1/fd/*"))
    assert run.stdout.text.split() == [
        *(f"self/fd/{number}" for number in (0, 1, 2)),
        "self/fd/3",  # of the shell that lists
        *(f"1/fd/{number}" for number in (0, 1, 2)),
    ]


@pytest.fixture
def candidate(world: World) -> Candidate:
    """The best variant of bubblewrap; proved here, for what proves it runs a loop of its own."""
    require_tier("bubblewrap")
    world.artoo_home.mkdir(mode=0o700)
    return first("bubblewrap", world.artoo_home)


@pytest.mark.skipif(not steps.supported(), reason="no machine code for this processor")
async def test_the_entry_in_python_holds_as_the_native_one(
    world: World, candidate: Candidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there is no machine code, the launcher does the same: pipes are closed, work in the view is not."""
    script = (
        "mkdir a b; echo 1 > a/f; mv a/f b/g; echo 2 > /tmp/t; echo 3 > /dev/null; echo 4 >> %s; ls /proc/self/fd"
    )
    with _place() as place:
        os.mkfifo(place / "pipe")
        reader = os.open(place / "pipe", os.O_RDWR)
        said: list[str] = []
        for native in (True, False):
            monkeypatch.setattr(entry, "supported", lambda native=native: native)
            sandbox = candidate.build(candidate.stage_homes)
            run = await sandbox.look(world.bash(script % (place / "pipe")))
            assert {change.kind for change in run.changes} == {ChangeKind.CREATED}, run.stderr.text
            said.append(run.stdout.text + run.stderr.text)
        os.close(reader)
    assert said[0] == said[1]
    assert "Permission denied" in said[0]
