"""A command's own control group, for real: skipped, with the reason, where none can be had."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from sandbox_world import Commands, World

from artoo.ports.sandbox import MIB, Limits
from artoo.world import cgroup
from artoo.world.cgroup import Group, grouped, place, sweep

_LITTLE = Limits(wall_seconds=60.0, memory_bytes=96 * MIB, disk_bytes=256 * MIB, processes=40)
"""What one file may have is bounded too, by the disk limit: it leaves room for the attempts."""


@pytest.fixture
def parent() -> Generator[Path]:
    """Where groups are made; none of a command is left there."""
    found = place()
    if found.parent is None:
        pytest.skip(f"no control group can be had here: {found.why}")
    yield found.parent
    assert not list(found.parent.glob("artoo-command-*"))


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)


def _python(world: World, code: str) -> str:
    (world.project / "code.py").write_text(code)
    return f"{sys.executable} -I -S code.py"


_HOLDS = {
    "pages of its own": "held = b'x' * (200 << 20)",
    "a memfd": "held = os.memfd_create('x'); [os.write(held, bytes(1 << 20)) for _ in range(200)]",
    "a file in /dev/shm": "f = open('/dev/shm/x', 'wb'); [f.write(bytes(1 << 20)) for _ in range(200)]",
    "shared pages": "m = mmap.mmap(-1, 200 << 20); [m.__setitem__(i, 1) for i in range(0, 200 << 20, 4096)]",
    "ten children": "pids = [os.fork() for _ in range(4)]; held = b'x' * (20 << 20)",
    "pipes": "ends = [os.pipe() for _ in range(400)]\n"
    "for r, w in ends: fcntl.fcntl(w, 1031, 1 << 20); os.set_blocking(w, False); os.write(w, bytes(1 << 20))",
}


@pytest.mark.parametrize("what", _HOLDS)
async def test_the_kernel_bounds_memory(parent: Path, any_overlay: Commands, world: World, what: str) -> None:
    """However it is held, memory beyond the limit ends the command as a memory limit."""
    code = f"import fcntl, mmap, os, time\n{_HOLDS[what]}\ntime.sleep(20)\n"
    run = await any_overlay.run(world.bash(_python(world, code), limits=_LITTLE))
    assert run.status == "memory_limit", (run.exit_code, run.stderr.text)


async def test_what_can_be_taken_back_is_no_excess(parent: Path, any_overlay: Commands, world: World) -> None:
    """Writing and reading more than the memory limit to files on a disk is no excess: caches are given back."""
    limits = Limits(wall_seconds=120.0, memory_bytes=96 * MIB, disk_bytes=8 * 1024 * MIB)
    script = "head -c 220M /dev/zero > big; cat big > /dev/null; cat big big > /dev/null; echo well"
    run = await any_overlay.run(world.bash(script, limits=limits))
    assert (run.status, run.stdout.text.strip()) == ("ok", "well"), run.stderr.text


async def test_files_of_the_layer_are_disk(parent: Path, any_overlay: Commands, world: World) -> None:
    """A layer in memory counts as disk and not as memory, so that where it lies changes nothing."""
    limits = Limits(wall_seconds=60.0, memory_bytes=96 * MIB, disk_bytes=160 * MIB)
    run = await any_overlay.run(world.bash("head -c 130M /dev/zero > big; sleep 1; echo well", limits=limits))
    assert (run.status, run.stdout.text.strip()) == ("ok", "well"), run.stderr.text


async def test_the_kernel_bounds_tasks(parent: Path, any_overlay: Commands, world: World) -> None:
    """A command that starts more than it may is ended as that; a plain user's own bound may refuse it first."""
    code = "import os\nfor _ in range(80):\n    if os.fork() == 0:\n        import time; time.sleep(30)\n"
    run = await any_overlay.run(world.bash(_python(world, code), limits=_LITTLE))
    assert run.status in ("process_limit", "error") and run.changes == ()


async def test_nothing_outlives_the_command(parent: Path, any_overlay: Commands, world: World) -> None:
    """What a command put into the background, in a session of its own, ends with it."""
    run = await any_overlay.run(world.bash("(setsid sleep 300 &) ; (setsid sleep 300 &) ; echo well"))
    assert run.stdout.text.strip() == "well"


async def test_a_cancelled_command_leaves_no_group(parent: Path, any_overlay: Commands, world: World) -> None:
    """Cancelling ends the command, and the group goes."""
    running = asyncio.create_task(any_overlay.run(world.bash("sleep 300")))
    await asyncio.to_thread(_until, lambda: any(Group(one).members() for one in parent.glob("artoo-command-*")))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_program_is_in_its_group_from_the_start(parent: Path) -> None:
    """The first thing that a program does, it does as a member."""
    async with grouped(_LITTLE, ()) as group:
        assert group is not None
        process = await asyncio.create_subprocess_exec(
            *group.joining(("/bin/cat", "/proc/self/cgroup")), stdout=asyncio.subprocess.PIPE
        )
        said, _ = await process.communicate()
        assert group.path.name in said.decode()


async def test_what_a_killed_artoo_left_is_swept(parent: Path) -> None:
    """A group that nobody holds is ended and removed; one that is held stays."""
    async with grouped(_LITTLE, ()) as held:
        assert held is not None
        left = parent / "artoo-command-left"
        left.mkdir()
        process = await asyncio.create_subprocess_exec(*Group(left).joining(("/bin/sleep", "300")))
        await asyncio.to_thread(_until, lambda: bool(Group(left).members()))
        sweep(parent)
        assert await process.wait() == -signal.SIGKILL
        sweep(parent)
        assert not left.exists()
        assert held.path.exists()


async def test_a_group_that_nobody_waits_for_any_more_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is cancelled while the group is made leaves no directory, and no lock that keeps others from sweeping."""
    begun, go_on = threading.Event(), threading.Event()
    made = cgroup._made  # pyright: ignore[reportPrivateUsage]
    locks: list[int] = []

    def slowly(parent: Path) -> tuple[Group, int]:
        begun.set()
        assert go_on.wait(10)
        group, lock = made(parent)
        locks.append(lock)
        return group, lock

    monkeypatch.setattr(cgroup, "_place", [cgroup.Place(tmp_path)])
    monkeypatch.setattr(cgroup, "_made", slowly)
    waiting = asyncio.create_task(grouped(_LITTLE, ()).__aenter__())
    assert await asyncio.to_thread(begun.wait, 10)
    waiting.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert locks and not list(tmp_path.iterdir())
    with pytest.raises(OSError):
        os.fstat(locks[0])


async def test_a_group_that_cannot_be_had_is_no_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no place, a command runs under the accounting: the group is none."""
    monkeypatch.setattr(cgroup, "_place", [cgroup.Place(None, "none")])
    async with grouped(_LITTLE, ()) as group:
        assert group is None


def test_a_tree_of_files_is_no_control_group(tmp_path: Path) -> None:
    """What only looks like a place is tried with a process, and refused with the reason."""
    (tmp_path / "cgroup.procs").touch()
    assert cgroup._proved(cgroup.Place(tmp_path)).parent is None  # pyright: ignore[reportPrivateUsage]
    assert os.listdir(tmp_path) == ["cgroup.procs"]
