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
from artoo.sandbox.limits.cgroup import Group, group_parent, open_group, sweep
from artoo.sandbox.limits.cgroup_delegation import GroupParent

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
    await asyncio.to_thread(_until, lambda: len(group.members()) > 1)
    await group.close()
    assert await process.wait() == -signal.SIGKILL and not group.path.exists()


async def test_what_a_killed_artoo_left_is_swept(parent: Path) -> None:
    """A group without a lock is ended and removed; a locked one stays."""
    held = await open_group(_LITTLE, ())
    assert held is not None
    left = parent / "artoo-sandbox-left"
    left.mkdir()
    process = await asyncio.create_subprocess_exec(*Group(left, -1).joining(("/bin/sleep", "300")))
    await asyncio.to_thread(_until, lambda: bool(Group(left, -1).members()))
    sweep(parent)
    assert await process.wait() == -signal.SIGKILL
    sweep(parent)
    assert not left.exists() and held.path.exists()
    await held.close()


async def test_where_there_is_no_place_there_is_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sandbox then runs under the monitor alone."""
    monkeypatch.setattr(cgroup, "_parent", [GroupParent(None, "none")])
    assert await open_group(_LITTLE, ()) is None


async def test_the_kernel_counts_what_cannot_be_taken_back(tmp_path: Path) -> None:
    """Caches of files are no use of memory; a group that is gone holds nothing."""
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.stat").write_text("anon 300\nactive_file 200\ninactive_file 100\nslab_reclaimable 50\n")
    assert Group(tmp_path, -1).memory_bytes() == 650
    assert Group(tmp_path / "gone", -1).memory_bytes() == 0


def test_a_tree_of_files_is_no_control_group(tmp_path: Path) -> None:
    """What only looks like a place for groups is tried with a process, and refused with the reason."""
    (tmp_path / "cgroup.procs").touch()
    assert cgroup._tried(GroupParent(tmp_path)).path is None  # pyright: ignore[reportPrivateUsage]
    assert os.listdir(tmp_path) == ["cgroup.procs"]
