"""kill -9 while a part of what waits is applied, or all is discarded: what is told afterwards is what happened."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest
from at_rest import config, settler_at_rest
from settle_later_victim import PART, TASK, part_in

sys.path.insert(0, str(Path(__file__).parents[1] / "workspace"))
from laid_out import Entry, World, snapshot, workspace_of

from artoo.contracts.settling import Ending
from artoo.runtime.changes.find_pending import find_pending, pendings
from artoo.runtime.changes.pending_changes import Pending
from artoo.runtime.changes.startup_recovery import recover_earlier
from artoo.workspace.commit import undo
from artoo.workspace.directory import Workspaces
from artoo.workspace.settlement.history import SettledRecord, settled_records

STRIDE = 29


def change(home: Path) -> None:
    """An edit and a new file, which will be chosen, and an edit and a deletion, which will not."""
    for name in ("a.txt", "b.txt"):
        (home / "project" / name).write_text("edited\n")
    (home / "project" / "gone.txt").unlink()
    (home / "project" / "new.txt").write_text("new\n")


class Victim:
    """Settles in processes that die."""

    def __init__(self, home: Path) -> None:
        self.world = World(home)
        program = Path(__file__).with_name("settle_later_victim.py")
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(program), str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    async def reset(self, mode: str) -> None:
        """A fresh project with a task's view over it; but for `chosen` the task has ended, and all of it waits."""
        world = self.world
        rmtree(world.project, ignore_errors=True)
        rmtree(world.artoo_home, ignore_errors=True)
        world.project.mkdir(parents=True)
        for name in ("a.txt", "b.txt", "gone.txt"):
            (world.project / name).write_text("old\n")
        workspace_of(world, change, TASK)
        if mode != "chosen":
            await settler_at_rest(world.home).settle(Ending(task_id=TASK, directive="accept"), None)

    def act(self, mode: str, fuse: int) -> bool:
        """Whether it came to its end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{mode} {fuse}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip() == "0"

    def tree(self) -> dict[str, Entry]:
        return snapshot(self.world.project)

    def part_is_there(self) -> bool:
        """Whether the part took effect: all of it or nothing, and nothing else."""
        project = self.world.project
        seen = ((project / "a.txt").read_text() == "edited\n", (project / "new.txt").exists())
        assert seen in ((True, True), (False, False))
        assert (project / "b.txt").read_text() == "old\n" and (project / "gone.txt").exists()
        return all(seen)

    def lines(self) -> list[SettledRecord]:
        return list(settled_records(self.world.artoo_home))

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    one = Victim(tmp_path.resolve() / "home")
    yield one
    one.close()


async def waits_truly(victim: Victim, applied: bool) -> Pending:
    """What is listed is what a look at the files finds: no more, no less."""
    (waiting,) = pendings(config(victim.world))
    shown = await waiting.diff()
    names = {Path(one.path).name for one in shown.changes}
    assert names == {"b.txt", "gone.txt"} | (set() if applied else set(PART))
    return waiting


async def settle_rest(victim: Victim, how: str) -> None:
    """Another process deals with what is left."""
    waiting = find_pending(config(victim.world), TASK)
    done = await (waiting.discard() if how == "discard" else waiting.apply())
    assert done.state == ("discarded" if how == "discard" else "applied")
    assert Workspaces(victim.world.artoo_home).find(TASK) is None


def take_back(victim: Victim, before: dict[str, Entry]) -> None:
    """Undo, when there is something to undo."""
    if victim.tree() != before:
        assert undo(victim.world.artoo_home, TASK).refused == ()


async def killed_in_a_part(victim: Victim, fuse: int, how: str) -> bool:
    """`artoo apply PATH` dies; the rest is settled by hand. Whether there is a later moment to die at."""
    await victim.reset("part")
    before = victim.tree()
    survived = victim.act("part", fuse)
    recover_earlier(config(victim.world))
    applied = victim.part_is_there()
    await waits_truly(victim, applied)
    await settle_rest(victim, how)
    first = [("applied", 2, set(part_in(victim.world.home)))] if applied else []
    rest = 2 if applied else 4
    told = [(one.what, one.count, set(one.paths)) for one in victim.lines()]
    assert told[: len(first)] == first, fuse
    ((what, count, _),) = told[len(first) :]
    assert what == ("discarded" if how == "discard" else "applied"), fuse
    assert count == rest or how == "discard", fuse  # a discard counts what was pending at the last review
    assert victim.part_is_there() == applied if how == "discard" else victim.tree() != before
    take_back(victim, before)
    assert victim.tree() == before, fuse
    return not survived


async def killed_at_the_end(victim: Victim, fuse: int, how: str) -> bool:
    """A review is answered with a part, the process dies; the rest is left, or settled by hand; it goes on."""
    await victim.reset("chosen")
    before = victim.tree()
    survived = victim.act("chosen", fuse)
    recover_earlier(config(victim.world))
    applied = victim.part_is_there()
    if how != "leave":
        await settle_rest(victim, how)
    told = await settler_at_rest(victim.world.home, again=True).settle(
        Ending(task_id=TASK, directive="accept"), None
    )
    part = set(part_in(victim.world.home)) if applied else set[str]()
    if how == "leave":
        assert (told.state, set(told.applied)) == ("partly" if applied else "pending", part), fuse
        assert {Path(one.path).name for one in told.changes} >= {"b.txt", "gone.txt"}
    else:
        assert (told.state, set(told.applied)) == ("applied" if applied else "none", part), fuse
        assert {one.path for one in told.changes} == part and sum(one.count for one in told.counts) == len(part)
        assert bool(told.reason) == applied
    take_back(victim, before)
    assert victim.tree() == before, fuse
    return not survived


@pytest.mark.parametrize("how", ["discard", pytest.param("apply", marks=pytest.mark.torture)])
async def test_a_part_is_applied_and_the_process_dies(victim: Victim, how: str) -> None:
    """At some changes on disk: the rest is listed as it is, the record says what happened, undo takes all back."""
    fuse = 1
    while await killed_in_a_part(victim, fuse, how):
        fuse += STRIDE
    assert fuse > STRIDE


@pytest.mark.parametrize(
    "how", ["leave", *(pytest.param(one, marks=pytest.mark.torture) for one in ("discard", "apply"))]
)
async def test_a_part_is_chosen_at_the_end_and_the_process_dies(victim: Victim, how: str) -> None:
    """At some changes on disk: the next life tells the part that took effect, and nothing that did not."""
    fuse = 1
    while await killed_at_the_end(victim, fuse, how):
        fuse += STRIDE
    assert fuse > STRIDE
