"""Groups are made where the kernel's rules and systemd's allow it, here over plain files that stand for theirs."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from artoo.sandbox.limits.cgroup import GroupParent, find_parent

_FILES = ("cgroup.procs", "cgroup.controllers", "cgroup.subtree_control")


@dataclass
class Tree:
    """A hierarchy of plain files, as this process would find it."""

    base: Path

    @property
    def top(self) -> Path:
        return self.base / "cgroup"

    def group(self, name: str, *, hands_on: str = "", holds: str = "") -> Path:
        """A group with all controllers; `name` is empty for the root of what is mounted."""
        group = self.top / name
        group.mkdir(parents=True, exist_ok=True)
        for file, text in zip(_FILES, (holds, "cpu memory pids", hands_on), strict=True):
            (group / file).write_text(text)
        if name:
            (group / "cgroup.type").write_text("domain")
        return group

    def found(self, own: str, *, booted: bool = False, lines: str = "") -> GroupParent:
        process = self.base / "self"
        process.mkdir(parents=True, exist_ok=True)
        (process / "cgroup").write_text(lines or f"0::{own}\n")
        systemd = self.base / "systemd"
        if booted:
            systemd.mkdir()
        return find_parent(self.top, process, systemd)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path / "with a blank")
    made.group("")
    return made


def _marked(group: Path) -> Path:
    try:
        os.setxattr(group, "user.delegate", b"1")
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            pytest.skip("no attributes on files here")
        raise
    return group


def test_the_group_above_is_taken_where_it_hands_both_on(tree: Tree) -> None:
    """Groups are made next to artoo's own, with memory and pids."""
    near = tree.group("a", hands_on="memory pids cpu")
    tree.group("a/b", holds="1 2")
    assert tree.found("/a/b") == GroupParent(near)
    (near / "cgroup.subtree_control").write_text("memory")
    assert tree.found("/a/b").path is None


def test_a_group_that_cannot_be_written_is_not_taken(tree: Tree) -> None:
    """Moving a process takes the right to write to the processes of the common ancestor."""
    near = tree.group("a", hands_on="memory pids")
    tree.group("a/b", holds="1 2")
    if os.geteuid() == 0:  # root may write anything that is there
        (near / "cgroup.procs").unlink()
    else:
        (near / "cgroup.procs").chmod(0)
    assert tree.found("/a/b").path is None


@pytest.mark.parametrize(
    ("name", "text"), [("memory.max", "1073741824"), ("pids.max", "100"), ("cpu.max", "50000 100000")]
)
def test_a_limit_is_not_left(tree: Tree, name: str, text: str) -> None:
    """A command stays below the limits that somebody has set for artoo's own group."""
    tree.group("", hands_on="memory pids")
    own = tree.group("own", holds="1 2")
    (own / name).write_text(text)
    assert tree.found("/own").path is None


def test_no_limit_is_none(tree: Tree) -> None:
    """Limits that say max, or are empty, limit nothing."""
    tree.group("", hands_on="memory pids")
    own = tree.group("own", holds="1 2")
    for name, text in (("memory.max", "max"), ("cpu.max", "max 100000"), ("cpuset.cpus", "\n")):
        (own / name).write_text(text)
    assert tree.found("/own") == GroupParent(tree.top)


def test_systemds_groups_are_left_alone(tree: Tree) -> None:
    """A slice that could be written is systemd's: what would help is said instead."""
    tree.group("user.slice", hands_on="memory pids")
    tree.group("user.slice/run.scope", holds=str(os.getpid()))
    for booted in (False, True):
        found = tree.found("/user.slice/run.scope", booted=booted)
        assert found.path is None
        assert "Delegate=yes" in found.remedy
    assert not (tree.top / "user.slice/run.scope/artoo-itself").exists()


def test_a_delegated_unit_of_ours_is_used(tree: Tree) -> None:
    """In a unit with Delegate= that holds only us, we go one below it and hand the controllers on."""
    tree.group("app.slice", hands_on="memory pids")
    unit = _marked(tree.group("app.slice/artoo.scope", holds=f"{os.getpid()}\n"))
    assert tree.found("/app.slice/artoo.scope", booted=True) == GroupParent(unit)
    assert (unit / "artoo-itself" / "cgroup.procs").read_text() == str(os.getpid())
    assert (unit / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_second_artoo_in_the_unit_uses_what_the_first_made(tree: Tree) -> None:
    """Started by the first, it finds itself one below; the unit hands on already."""
    unit = _marked(tree.group("artoo.scope", hands_on="memory pids"))
    tree.group("artoo.scope/artoo-itself", holds="1 2")
    assert tree.found("/artoo.scope/artoo-itself", booted=True) == GroupParent(unit)


def test_who_is_not_ours_is_not_moved(tree: Tree) -> None:
    """A delegated unit in which a shell lives too stays as it is."""
    unit = _marked(tree.group("shell.scope", holds=f"1\n{os.getpid()}\n"))
    assert tree.found("/shell.scope", booted=True).path is None
    assert not (unit / "artoo-itself").exists()
    assert (unit / "cgroup.subtree_control").read_text() == ""


def test_a_unit_with_a_manager_of_its_own_is_not_ours(tree: Tree) -> None:
    """The user's own systemd has been given its unit; what it made of that is not for others."""
    manager = _marked(tree.group("user@1000.service", hands_on="memory pids"))
    (manager / "init.scope").mkdir()
    tree.group("user@1000.service/app.scope", holds=str(os.getpid()))
    assert tree.found("/user@1000.service/app.scope", booted=True).path is None


def test_the_root_is_not_asked_to_hand_on(tree: Tree) -> None:
    """What the root of the whole hierarchy hands on is the machine's affair, even if only we lived there."""
    tree.group("", holds=str(os.getpid()))
    assert tree.found("/").path is None
    assert (tree.top / "cgroup.subtree_control").read_text() == ""


@pytest.mark.parametrize(
    "lines", ["4:memory:/x\n", "0::/../outside\n", "0::/gone\n"], ids=["only v1", "outside", "not there"]
)
def test_where_nothing_is_found_the_reason_is_said(tree: Tree, lines: str) -> None:
    """The first version alone, a group outside what is mounted, a group that is gone: none, with a sentence."""
    tree.group("", hands_on="memory pids")
    found = tree.found("", lines=lines)
    assert found.path is None
    assert found.why


def test_controllers_of_the_first_version_are_not_there(tree: Tree) -> None:
    """Where memory is mounted in version 1, the second has no such controller: that is said."""
    for group in (tree.group(""), tree.group("own", holds="1")):
        (group / "cgroup.controllers").write_text("hugetlb")
    assert "no memory and pids" in tree.found("/own").why
