"""What waits is whole on a disk before it is said to wait; and what is told where there is no room, or no disk."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from at_rest import config, edit, settler_at_rest

sys.path.insert(0, str(Path(__file__).parents[1] / "workspace"))
sys.path.insert(0, str(Path(__file__).parents[1] / "redteam"))
from laid_out import World, workspace_of
from whole_task import Person, acted, command

from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import Ending, Settled
from artoo.disk import file_system
from artoo.runtime.changes.find_pending import find_pending, pendings
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.settlement import pending, service
from artoo.workspace.settlement.pending import PendingRecord

TASK = "task-1"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A home with a file in its project."""
    world = World.at(tmp_path, a_txt="one\n")
    (world.home / "artoo_workspace").mkdir()
    return world


@pytest.fixture
def in_memory(world: World) -> Iterator[World]:
    """artoo's home in memory, with some room."""
    world.artoo_home.mkdir(mode=0o700)
    mount = ("mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs", str(world.artoo_home))
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield world
    subprocess.run(("umount", "-l", str(world.artoo_home)), check=True)


async def ended(world: World) -> Settled:
    """The task ends, and nobody is there."""
    return await settler_at_rest(world.home).settle(Ending(task_id=TASK, directive="accept"), None)


async def test_a_disk_that_fills_up_at_the_last_moment(in_memory: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no room for the record: nothing is lost, it is listed with its request, and can be applied."""
    world = in_memory
    person = Person(world.home, world.project)
    filler = world.artoo_home / "filler"

    async def later(request: ConfirmationRequest) -> Consent:
        return Consent.KEEP

    def fill_up(place: WorkspaceDirectory, record: PendingRecord) -> None:
        with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        pending.write_pending(place, record)

    monkeypatch.setattr(service, "write_pending", fill_up)
    done = await acted(person, [command("echo edited > a.txt")], confirm=later)
    assert done.state == "pending" and "No space left" in done.result.changes.reason
    assert [Path(one.path).name for one in done.result.changes.changes] == ["a.txt"]
    assert (world.project / "a.txt").read_text() == "one\n"
    (waiting,) = pendings(person.config)
    assert waiting.request == "Do it."
    filler.unlink()
    assert (await find_pending(person.config, waiting.task_id).apply()).state == "applied"
    assert (world.project / "a.txt").read_text() == "edited\n" and pendings(person.config) == ()


def fill(home: Path) -> Path:
    """Takes all the room there is; gives the file that does."""
    filler = home / "filler"
    with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return filler


async def test_a_later_yes_takes_effect_only_as_it_is_written_down(in_memory: World) -> None:
    """`artoo apply` writes no task log; its journal says first who applied what. Without room for that nothing is
    applied, what waits goes on waiting, and with room again it is applied and on record."""
    workspace_of(in_memory, edit, TASK)
    await ended(in_memory)
    filler = fill(in_memory.artoo_home)
    with pytest.raises(SandboxError, match="No space left"):
        await find_pending(config(in_memory), TASK).apply()
    assert (in_memory.project / "a.txt").read_text() == "one\n"
    filler.unlink()
    assert (await find_pending(config(in_memory), TASK).apply()).state == "applied"
    assert (in_memory.project / "a.txt").read_text() == "edited\n"


async def test_a_discard_needs_no_room(in_memory: World) -> None:
    """It may be what waits that fills the disk."""
    workspace_of(in_memory, edit, TASK)
    await ended(in_memory)
    fill(in_memory.artoo_home)
    assert (await find_pending(config(in_memory), TASK).discard()).state == "discarded"
    assert pendings(config(in_memory)) == () and Workspaces(in_memory.artoo_home).find(TASK) is None


async def test_a_home_in_memory_is_named(in_memory: World) -> None:
    """There is no disk to move it to: the result says what a reboot would do."""
    workspace_of(in_memory, edit, TASK)
    settled = await ended(in_memory)
    assert settled.state == "pending" and "lost at a reboot" in settled.reason


async def test_what_cannot_be_made_durable_is_not_recorded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files come before the record that speaks of them; a disk that refuses them is reported."""
    order: list[str] = []
    real_sync, real_replace = pending.sync_file_system, pending.write_durably

    def sync(place: Path) -> None:
        order.append("files")
        real_sync(place)

    def replace(path: Path, content: bytes) -> None:
        order.append(path.name)
        real_replace(path, content)

    monkeypatch.setattr(pending, "sync_file_system", sync)
    monkeypatch.setattr(pending, "write_durably", replace)
    workspace_of(world, edit, TASK)
    assert (await ended(world)).state == "pending"
    assert order == ["files", "pending.json"]
    (Workspaces(world.artoo_home).directory(TASK).base / "pending.json").unlink()
    monkeypatch.setattr(file_system.ctypes, "CDLL", Refusing)
    settled = await ended(world)
    assert settled.state == "pending" and os.strerror(errno.EIO) in settled.reason
    assert not (Workspaces(world.artoo_home).directory(TASK).base / "pending.json").exists()


class Refusing:
    """A C library whose disk is broken."""

    def __init__(self, name: None, *, use_errno: bool) -> None:
        assert name is None and use_errno

    def syncfs(self, descriptor: int) -> int:
        """Fails as the kernel does after a write that did not reach the disk."""
        ctypes.set_errno(errno.EIO)
        return -1
