"""A sandbox's own control group, for real: skipped, with the reason, where none can be had."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from artoo.ports.workspace import MIB, SandboxLimits
from artoo.sandbox.limits import cgroup
from artoo.sandbox.limits.cgroup import Group, GroupParent, group_parent, open_group

_LITTLE = SandboxLimits(memory_bytes=96 * MIB, disk_bytes=256 * MIB, processes=40)


@pytest.fixture
def parent() -> Generator[Path]:
    """Where groups are made; none of a sandbox is left there."""
    found = group_parent()
    if found.path is None:
        pytest.skip(f"no control group can be had here: {found.why}")
    yield found.path
    assert not list(found.path.glob("artoo-sandbox-*"))


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)


async def test_a_program_is_in_its_group_from_the_start(parent: Path) -> None:
    """The first thing that a program does, it does as a member, below bounds a little above the limits."""
    group = await open_group(_LITTLE, ())
    assert group is not None
    try:
        process = await asyncio.create_subprocess_exec(
            *group.joining(("/bin/cat", "/proc/self/cgroup")), stdout=asyncio.subprocess.PIPE
        )
        said, _ = await process.communicate()
        assert group.path.name in said.decode()
        assert int((group.path / "memory.max").read_text()) > _LITTLE.memory_bytes
        assert int((group.path / "pids.max").read_text()) > _LITTLE.processes
    finally:
        await group.close()


async def test_nothing_outlives_its_group(parent: Path) -> None:
    """What a sandbox put into the background, in a session of its own, ends with it."""
    group = await open_group(_LITTLE, ())
    assert group is not None
    process = await asyncio.create_subprocess_exec(*group.joining(("/bin/sh", "-c", "setsid sleep 300 & wait")))
    await asyncio.to_thread(_until, lambda: len((group.path / "cgroup.procs").read_text().split()) > 1)
    await group.close()
    assert await process.wait() == -signal.SIGKILL and not group.path.exists()


def test_what_a_killed_artoo_left_is_removed(tmp_path: Path) -> None:
    """A group of a process that is gone; a group of one that lives stays."""
    names = (f"artoo-sandbox-{os.getpid()}-1", "artoo-sandbox-999999999-1", "x")
    ours, left, other = (tmp_path / name for name in names)
    for path in (ours, left, other):
        path.mkdir()
    cgroup._remove_leftovers(tmp_path)  # pyright: ignore[reportPrivateUsage]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted((ours.name, other.name))


async def test_where_there_is_no_place_there_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox then runs under the monitor alone."""
    monkeypatch.setattr(cgroup, "_parent", [GroupParent(None, "none")])
    assert await open_group(_LITTLE, ()) is None


async def test_what_looks_like_a_place_and_is_none_gives_no_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that cannot join its group runs all the same, and a group that cannot be limited is removed."""
    monkeypatch.setattr(cgroup, "_parent", [GroupParent(tmp_path / "missing")])
    assert await open_group(_LITTLE, ()) is None
    process = await asyncio.create_subprocess_exec(
        *Group(tmp_path / "missing").joining(("/bin/echo", "runs")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert await process.communicate() == (b"runs\n", None)
