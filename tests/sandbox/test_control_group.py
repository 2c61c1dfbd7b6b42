"""A sandbox's own control group: where it may be made, by files that stand for the kernel's, and what it does."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from artoo.ports.workspace import MIB, SandboxLimits
from artoo.sandbox.limits import cgroup
from artoo.sandbox.limits.cgroup import Group, GroupParent, find_parent, group_parent, open_group

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


# --- Where groups may be made ------------------------------------------------------------------------------------

_FILES = ("cgroup.procs", "cgroup.controllers", "cgroup.subtree_control")


@dataclass
class Tree:
    """A hierarchy of plain files, as this process would find it."""

    base: Path

    @property
    def top(self) -> Path:
        return self.base / "cgroup"

    def group(self, name: str, *, hands_on: str = "", holds: str = "", is_delegated: bool = False) -> Path:
        """A group with all controllers; `name` is empty for the root of what is mounted."""
        group = self.top / name
        group.mkdir(parents=True, exist_ok=True)
        for file, text in zip(_FILES, (holds, "cpu memory pids", hands_on), strict=True):
            (group / file).write_text(text)
        if name:
            (group / "cgroup.type").write_text("domain")
        if is_delegated:
            try:
                os.setxattr(group, "user.delegate", b"1")
            except OSError:
                pytest.skip("no attributes on files here")
        return group

    def found(self, own: str, lines: str = "") -> GroupParent:
        process = self.base / "self"
        process.mkdir(parents=True, exist_ok=True)
        (process / "cgroup").write_text(lines or f"0::{own}\n")
        return find_parent(self.top, process, self.base)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path / "with a blank")
    made.group("")
    return made


def test_a_delegated_unit_of_ours_is_used(tree: Tree) -> None:
    """In a unit with Delegate= that holds only us, we go one below it, and a second artoo finds that done."""
    unit = tree.group("app.slice/artoo.scope", holds=f"{os.getpid()}\n", is_delegated=True)
    assert tree.found("/app.slice/artoo.scope") == GroupParent(unit)
    assert (unit / "artoo-itself" / "cgroup.procs").read_text() == str(os.getpid())
    assert (unit / "cgroup.subtree_control").read_text() == "+memory +pids"
    unit = tree.group("second.scope", hands_on="memory pids", is_delegated=True)
    tree.group("second.scope/artoo-itself", holds="1 2")
    assert tree.found("/second.scope/artoo-itself") == GroupParent(unit)


def test_groups_of_others_are_left_alone(tree: Tree) -> None:
    """Of systemd, of a unit in which a shell lives too, of a user's systemd, and the root: the remedy is said."""
    tree.group("user.slice/run.scope", holds=str(os.getpid()))
    tree.group("shell.scope", holds=f"1\n{os.getpid()}\n", is_delegated=True)
    manager = tree.group("user@1000.service", holds=str(os.getpid()), is_delegated=True)
    (manager / "init.scope").mkdir()
    tree.group("", holds=str(os.getpid()))
    for own in ("user.slice/run.scope", "shell.scope", "user@1000.service", ""):
        found = tree.found(f"/{own}")
        assert found.path is None and "Delegate=yes" in found.remedy, own
        assert (tree.top / own / "cgroup.subtree_control").read_text() == ""


@pytest.mark.parametrize("lines", ["4:memory:/x\n", "0::/../outside\n", "0::/gone\n", "0::/own\n"])
def test_where_nothing_is_found_the_reason_is_said(tree: Tree, lines: str) -> None:
    """The first version alone, a group outside what is mounted or gone, or one without the controllers."""
    (tree.group("own", holds="1") / "cgroup.controllers").write_text("hugetlb")
    found = tree.found("", lines)
    assert found.path is None and found.why
