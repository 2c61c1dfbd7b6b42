"""Forks of a view: each sees the trunk as it was, and joining keeps the earlier one's version of a path."""

from __future__ import annotations

import asyncio

import pytest
from sandbox_snapshots import snapshot
from sandbox_world import World
from view_world import bash, out, overlay_views, place_of

from artoo.contracts.errors import SandboxError
from artoo.ports.world import View
from artoo.world.closing import opened
from artoo.world.pending import PendingRecord


async def test_forks_are_apart_and_join_in_order(any_view: View, world: World) -> None:
    """Two forks run at once, see the trunk and not each other; joined, the trunk holds both."""
    (world.project / "shared").write_text("real\n")
    await bash(any_view, "echo trunk > trunk; echo t >> shared")
    one, two = any_view.fork("one"), any_view.fork("two")
    await asyncio.gather(
        bash(one, "cat trunk shared > one; mkdir -p d; echo 1 > d/1"),
        bash(two, "cat trunk shared > two; mkdir -p d; echo 2 > d/2"),
    )
    assert await out(one, "ls -A; ls -A d") == "d\none\nshared\ntrunk\n1\n"
    with pytest.raises(SandboxError, match="forks are open"):
        await bash(any_view, "true")
    assert await any_view.join(["one", "two"]) == ()
    assert await out(any_view, "ls -A; ls -A d; cat two") == "d\none\nshared\ntrunk\ntwo\n1\n2\ntrunk\nreal\nt\n"
    assert place_of(world).layer_names() == ("task",)


async def test_the_earlier_version_stands(view: View, world: World) -> None:
    """Edits of one file, a deletion against an edit, a directory removed against a file put into it: conflicts."""
    for name in ("both", "gone", "same"):
        (world.project / name).write_text("real\n")
    for name in ("tree", "cut"):
        (world.project / name).mkdir()
        (world.project / name / "leaf").write_text("leaf\n")
    one, two = view.fork("one"), view.fork("two")
    await bash(one, "echo 1 > both; rm gone; echo s > same; echo n > tree/new; rm -r cut; chmod 700 .")
    await bash(two, "echo 2 > both; echo 2 > gone; echo s > same; rm -r tree; echo 2 > cut/leaf; echo 2 > own")
    conflicts = await view.join(["one", "two"])
    assert [conflict.path.removeprefix(f"{world.project}/") for conflict in conflicts] == [
        "both",
        "cut/leaf",
        "gone",
        "tree",
    ]
    assert {(conflict.stands, conflict.lost) for conflict in conflicts} == {("one", "two")}
    found = await out(view, "cat both same own tree/new tree/leaf; ls; stat -c %a .")
    assert found == "1\ns\n2\nn\nleaf\nboth\nown\nsame\ntree\n700\n"


async def test_scratch_needs_no_version_of_anybody(view: View, world: World) -> None:
    """What git makes again whenever it needs it is the earlier one's, and no conflict; what it keeps is one."""
    scratch, kept = ("COMMIT_EDITMSG", "ORIG_HEAD", "gc.log"), ("MERGE_MSG", "modules/lib/HEAD", "refs/heads/main")
    paths = " ".join(f".git/{name}" for name in (*scratch, *kept))
    await bash(view, "mkdir -p .git/refs/heads .git/modules/lib")
    one, two = view.fork("one"), view.fork("two")
    await bash(one, f"echo 1 | tee {paths}")
    await bash(two, f"echo 2 | tee {paths}")
    conflicts = await view.join(["one", "two"])
    assert [conflict.path.removeprefix(f"{world.project}/.git/") for conflict in conflicts] == list(kept)
    assert await out(view, f"cat {paths}") == "1\n" * 6


async def test_two_that_run_the_tests_are_no_conflict(view: View, world: World) -> None:
    """What tools remember of a run, and compiled code, is made again; such a file elsewhere is the task's own."""
    caches, own = ".pytest_cache/v/nodeids pkg/__pycache__/m.cpython-311.pyc", "nodeids pkg/m.pyc"
    await bash(view, "mkdir -p .pytest_cache/v pkg/__pycache__")
    for number in (1, 2):
        await bash(view.fork(str(number)), f"echo {number} | tee {caches} {own}")
    conflicts = await view.join(["1", "2"])
    assert [conflict.path.removeprefix(f"{world.project}/") for conflict in conflicts] == own.split()


async def test_a_replaced_directory_does_not_hide_the_earlier_forks_files(view: View, world: World) -> None:
    """A later fork that made a directory anew removes what it saw of the old one, not what another put there."""
    (world.project / "d" / "deep").mkdir(parents=True)
    (world.project / "d" / "old").write_text("old\n")
    (world.project / "d" / "deep" / "old").write_text("old\n")
    one, two = view.fork("one"), view.fork("two")
    await bash(one, "echo 1 > d/deep/one; echo 1 > d/one")
    await bash(two, "rm -r d; mkdir -p d/deep; echo 2 > d/deep/two")
    await view.join(["one", "two"])
    assert await out(view, "find d -type f | sort") == "d/deep/one\nd/deep/two\nd/one\n"


async def test_what_a_fork_only_opened_is_not_its_version(view: View, world: World) -> None:
    """A file that the later fork opened for writing and left alone does not undo the earlier one's edit."""
    (world.project / "file").write_text("real\n")
    one, two = view.fork("one"), view.fork("two")
    await bash(one, "echo 1 > file")
    await bash(two, ": >> file; echo x > other")
    assert await view.join(["one", "two"]) == ()
    assert await out(view, "cat file other") == "1\nx\n"


async def test_a_dropped_fork_leaves_nothing(view: View, world: World) -> None:
    """A second way in a fork of a fork is thrown away; what it was forked from is as it was."""
    await bash(view, "echo a > a")
    fork = view.fork("one")
    await bash(fork, "echo b > b")
    second = fork.fork("second way")
    assert await out(second, "cat a b; rm a b; echo c > c; ls -A") == "a\nb\nc\n"
    await fork.drop("second way")
    await fork.drop("second way")
    assert await out(fork, "ls -A") == "a\nb\n"
    await view.drop("one")
    assert await out(view, "ls -A") == "a\n"
    assert place_of(world).layer_names() == ("task",)


async def test_a_fork_without_a_write_costs_nothing(view: View, world: World) -> None:
    """A fork that only reads makes no layer, and joins without a trace."""
    fork = view.fork("one")
    assert await out(fork, "ls -A") == ""
    assert not place_of(world).layer_home("one").exists()
    assert await view.join(["one"]) == ()
    await bash(view, "true")


async def test_a_join_can_be_repeated(view: View, world: World) -> None:
    """The same join again, in this process or after it, gives the same conflicts and changes nothing."""
    one, two = view.fork("one"), view.fork("two")
    await bash(one, "echo 1 > f")
    await bash(two, "echo 2 > f")
    first = await view.join(["one", "two"])
    assert len(first) == 1
    assert await view.join(["one", "two"]) == first
    await view.close()
    again = overlay_views("bubblewrap", world)("task-1", world.roots)
    assert await again.join(["one", "two"]) == first
    assert await out(again, "cat f") == "1\n"
    await again.close()


async def test_sixty_commands_and_three_levels(any_view: View, world: World) -> None:
    """Folding keeps the stack as low as the forks are deep, however many commands run."""
    before = snapshot(world.home, times=True)
    for number in range(60):
        await bash(any_view, f"echo {number} > last; echo {number} > f{number}; rm -f f{number - 1}")
    first = any_view.fork("1")
    await bash(first, "echo 1 >> last")
    second = first.fork("2")
    await bash(second, "echo 2 >> last; rm f59")
    third = second.fork("3")
    await bash(third, "echo 3 >> last; ls > names")
    assert await out(third, "cat last names") == "59\n1\n2\n3\nlast\nnames\n"
    for view, name in ((second, "3"), (first, "2"), (any_view, "1")):
        assert await view.join([name]) == ()
    assert await out(any_view, "cat last names; ls -A") == "59\n1\n2\n3\nlast\nnames\nlast\nnames\n"
    assert snapshot(world.home, times=True) == before


async def test_open_forks_of_a_cut_off_task_outlive_the_settling_of_the_rest(view: View, world: World) -> None:
    """The person applies what was joined by then; a later process finds the fork with its work, and joins it."""
    (world.project / "shared").write_text("real\n")
    await bash(view, "echo trunk > trunk; rm shared")
    await bash(view.fork("one"), "echo 1 > one; mkdir d; echo 1 > d/1; cat trunk >> one")
    await view.close()
    with opened(place_of(world), world.artoo_home) as closing:
        closing.keep(PendingRecord(task_id="task-1", since=1.0, expires_at=2.0))
        found = closing.difference()
        assert closing.apply(found, digest=found.digest).whole
        assert closing.difference().empty and closing.pending is None
    assert (world.project / "trunk").read_text() == "trunk\n" and not (world.project / "shared").exists()
    again = overlay_views("bubblewrap", world)("task-1", world.roots)
    assert await again.join(["one"]) == ()
    assert await out(again, "cat one d/1; ls") == "1\ntrunk\n1\nd\none\ntrunk\n"
    await again.close()
    with opened(place_of(world), world.artoo_home) as closing:
        found = closing.difference()
        assert closing.apply(found, digest=found.digest).whole
    assert (world.project / "one").read_text() == "1\ntrunk\n"
    assert not place_of(world).base.exists()
