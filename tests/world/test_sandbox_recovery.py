"""Crashes: whenever a process dies, the tree is wholly before or wholly after once the next start has recovered."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from apply_victim import SCRIPT, fill
from sandbox_snapshots import Entry, snapshot
from sandbox_world import World, require_tier

from artoo.world.recover import recover
from artoo.world.undo import undo

_TIER = "bubblewrap"


class Victim:
    """Starts applies and kills them."""

    def __init__(self, home: Path, tier: str) -> None:
        self._home = home
        program = Path(__file__).with_name("apply_victim.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program), str(home), tier],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def reset(self) -> None:
        shutil.rmtree(self._home / "project", ignore_errors=True)
        for place in ("undo", "views"):
            shutil.rmtree(self._home / ".artoo" / place, ignore_errors=True)
        (self._home / "project").mkdir(parents=True)
        fill(self._home / "project")

    def start(self, fuse: int = 0) -> int:
        """Starts an apply and returns its pid when it is about to begin."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{fuse}\n")
        self._process.stdin.flush()
        pid = int(self._line())
        assert self._line() == "applying"
        return pid

    def wait(self) -> None:
        while self._line() != "ended":
            continue

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the victim's parent died"
        return line.strip()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@pytest.fixture
def victim(world: World) -> Iterator[Victim]:
    tier = _TIER
    require_tier(tier)
    one = Victim(world.home, tier)
    yield one
    one.close()


def both_ends(victim: Victim, world: World) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """The tree before, and after an apply that nothing disturbed."""
    victim.reset()
    before = snapshot(world.project)
    victim.start()
    victim.wait()
    after = snapshot(world.project)
    assert "swap" in SCRIPT and after != before
    return before, after


def settled(world: World) -> dict[str, Entry]:
    recover(world.artoo_home)
    assert recover(world.artoo_home).finished == ()
    leftovers = list(world.home.rglob(".artoo-*"))
    assert leftovers == []
    stages = world.artoo_home / "stage"
    assert not stages.is_dir() or list(stages.iterdir()) == []
    return snapshot(world.project)


def kill_at_random(victim: Victim, world: World, times: int) -> None:
    before, after = both_ends(victim, world)
    chance = random.Random(times)
    ends = {"before": 0, "after": 0}
    for _ in range(times):
        victim.reset()
        pid = victim.start()
        time.sleep(chance.uniform(0, 0.05))
        with suppress(ProcessLookupError):  # it was faster
            os.kill(pid, signal.SIGKILL)
        victim.wait()
        found = settled(world)
        assert found in (before, after)
        ends["before" if found == before else "after"] += 1
        if found == after:
            assert undo(world.artoo_home, "victim").refused == ()
            assert snapshot(world.project) == before
    print(f"killed {times} times: {ends}")


def test_kill_at_random_moments(victim: Victim, world: World) -> None:
    """kill -9 at fifteen random moments of an apply: wholly before or wholly after."""
    kill_at_random(victim, world, 15)


@pytest.mark.torture
def test_kill_at_random_moments_often(victim: Victim, world: World) -> None:
    """kill -9 at two hundred random moments of an apply: wholly before or wholly after."""
    kill_at_random(victim, world, 200)


def kill_at_each_call(victim: Victim, world: World, stride: int) -> None:
    before, after = both_ends(victim, world)
    ends: list[bool] = []
    for fuse in range(1, 2000, stride):
        victim.reset()
        victim.start(fuse)
        victim.wait()
        complete = bool(list((world.artoo_home / "undo" / "victim").glob("*/done")))
        found = settled(world)
        assert found in (before, after), f"killed at call {fuse}"
        ends.append(found == after)
        if complete:
            break
    assert ends[0] is False and ends[-1] is True
    assert ends == sorted(ends), "a later death never undoes what an earlier one would have finished"


def test_kill_at_some_calls(victim: Victim, world: World) -> None:
    """Death at every eleventh system call of an apply: wholly before, and from the commit on wholly after."""
    kill_at_each_call(victim, world, 11)


@pytest.mark.torture
def test_kill_at_each_call(victim: Victim, world: World) -> None:
    """Death at every single system call of an apply: wholly before, and from the commit on wholly after."""
    kill_at_each_call(victim, world, 1)


def test_user_change_after_the_crash_survives(victim: Victim, world: World) -> None:
    """A file that the user edits between crash and recovery keeps the user's content; the act is taken back."""
    before, after = both_ends(victim, world)
    for fuse in range(30, 300, 9):
        victim.reset()
        victim.start(fuse)
        victim.wait()
        (world.project / "over2").write_text("the user's own")
        report = recover(world.artoo_home)
        assert (world.project / "over2").read_text() == "the user's own"
        rest = {name: entry for name, entry in snapshot(world.project).items() if name != "over2"}
        expected = [{name: entry for name, entry in end.items() if name != "over2"} for end in (before, after)]
        assert rest in expected
        if report.undone:
            assert [conflict.path for conflict in report.conflicts] == [f"{world.project}/over2"]
            return
    pytest.fail("no death between commit and end was met")
