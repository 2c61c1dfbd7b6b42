"""Two who settle the same changes at once: one of them did it, and the other is told that it is done."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest
from at_rest import config, settler_at_rest

sys.path.insert(0, str(Path(__file__).parents[1] / "workspace"))
from laid_out import World, workspace_of

from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import Ending, Settled
from artoo.runtime.changes.find_pending import find_pending
from artoo.runtime.changes.pending_changes import Pending
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.settlement.history import settled_records

TASK = "task-1"
FILES = 40


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A home with a project of some files."""
    return World.at(tmp_path, **{f"{number}_txt": "one\n" for number in range(FILES)})


def edit(home: Path) -> None:
    for number in range(FILES):
        (home / "project" / f"{number}.txt").write_text("two\n")


async def waiting(world: World) -> tuple[Pending, Pending]:
    """The changes of a task, in two hands."""
    workspace_of(world, edit, TASK)
    assert (await settler_at_rest(world.home).settle(Ending(task_id=TASK, directive="accept"), None)).waits
    return find_pending(config(world), TASK), find_pending(config(world), TASK)


def edited(world: World) -> int:
    return sum((world.project / f"{number}.txt").read_text() == "two\n" for number in range(FILES))


@pytest.mark.parametrize("apply_first", [True, False])
async def test_of_two_who_settle_at_once_one_did_it(world: World, apply_first: bool) -> None:
    """Whoever had to wait for the other looks again: nothing waits, and there is one line on record."""
    one, other = await waiting(world)
    works = [one.apply(), other.discard()] if apply_first else [one.discard(), other.apply()]
    told = await asyncio.gather(*works, return_exceptions=True)
    (done,) = [each for each in told if isinstance(each, Settled)]
    (late,) = [each for each in told if isinstance(each, BaseException)]
    assert isinstance(late, SandboxError) and "applied or discarded" in str(late)
    assert edited(world) == (FILES if done.state == "applied" else 0)
    assert [line.what for line in settled_records(world.artoo_home)] == [done.state]
    assert Workspaces(world.artoo_home).remembered() == ()


async def test_a_look_that_had_to_wait_finds_nothing(world: World) -> None:
    """Somebody settled it while the look waited for them."""
    one, other = await waiting(world)
    place = Workspaces(world.artoo_home).directory(TASK)
    with place.locked():
        looks = asyncio.gather(one.diff(), other.apply(), return_exceptions=True)
        await asyncio.sleep(0.1)  # either they wait by now, or they find it gone from the beginning
        place.remove()
    assert [type(each) for each in await looks] == [SandboxError, SandboxError]
    assert edited(world) == 0 and not place.base.exists()


def test_a_workspace_that_is_removed_under_a_lock_can_be_locked_by_the_next(tmp_path: Path) -> None:
    """Its directory may go and come back while others wait for it: none of them meets an error of the system."""
    place, met = WorkspaceDirectory(tmp_path / "task"), list[OSError]()

    def take_and_remove() -> None:
        try:
            for _ in range(300):
                with place.locked(60.0):
                    place.remove()
        except OSError as error:
            met.append(error)

    threads = [threading.Thread(target=take_and_remove) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [] and not place.base.exists()
