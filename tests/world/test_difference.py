"""What a view's difference is: classes, moves, conflicts with what the person did, the digest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from layers import view_of
from sandbox_world import World

from artoo.contracts.settling import ChangeClass, implied
from artoo.tools.review import review_of
from artoo.world.base import Base, append_base
from artoo.world.difference import Difference, difference_of
from artoo.world.journal import StateRecord
from artoo.world.move import now_at
from artoo.world.union import RealFiles, Union
from artoo.world.view_place import ViewPlace

Change = Callable[[Path], object]


@pytest.fixture
def world(world: World) -> World:
    """A home with some files."""
    for name, text in {"a.txt": "one\n", "b.txt": "two\n", "src/m.py": "x = 1\n", "src/n.py": "y = 2\n"}.items():
        path = world.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (world.home / "letter.txt").write_text("dear\n")
    (world.home / ".bashrc").write_text("alias x=y\n")
    return world


def classes(found: Difference, world: World) -> dict[str, str]:
    """Class by path below the home."""
    return {one.path.removeprefix(f"{world.home}/"): one.change_class.value for one in found.classes}


def look(place: ViewPlace, world: World) -> Difference:
    return difference_of(place, world.artoo_home)


CLASSES: list[tuple[Change, dict[str, str]]] = [
    (lambda p: (p / "new.txt").write_text("n"), {"project/new.txt": "silent"}),
    (lambda p: (p / "a.txt").write_text("changed"), {"project/a.txt": "edit"}),
    (lambda p: (p / "a.txt").unlink(), {"project/a.txt": "deletion"}),
    (
        lambda p: (p / "a.txt").rename(p / "c.txt"),
        {"project/a.txt": "edit", "project/c.txt": "silent"},
    ),
    (
        lambda p: (p / "src").rename(p / "lib"),
        {
            "project/src": "edit",
            "project/src/m.py": "edit",
            "project/src/n.py": "edit",
            "project/lib": "silent",
            "project/lib/m.py": "silent",
            "project/lib/n.py": "silent",
        },
    ),
    (
        lambda p: (shutil.copytree(p / "src", p / "lib"), shutil.rmtree(p / "src"), (p / "lib/n.py").unlink()),
        {
            "project/src": "deletion",
            "project/src/m.py": "edit",
            "project/src/n.py": "deletion",
            "project/lib": "silent",
            "project/lib/m.py": "silent",
        },
    ),
    (lambda p: (p / "a.txt").chmod(0o755), {"project/a.txt": "mode"}),
    (lambda p: os.utime(p / "a.txt", (1, 1)), {"project/a.txt": "silent"}),
    (lambda p: (p / "l").symlink_to("a.txt"), {"project/l": "silent"}),
    (lambda p: (p / "l").symlink_to("/etc/passwd"), {"project/l": "link"}),
    (lambda p: ((p / "a.txt").unlink(), (p / "a.txt").symlink_to("b.txt")), {"project/a.txt": "link"}),
    (lambda p: ((p / "a.txt").unlink(), (p / "a.txt").mkdir()), {"project/a.txt": "deletion"}),
    (lambda p: (p.parent / "x.txt").write_text("x"), {"x.txt": "elsewhere"}),
    (lambda p: (p.parent / "letter.txt").write_text("x"), {"letter.txt": "elsewhere"}),
    (lambda p: (p.parent / "letter.txt").unlink(), {"letter.txt": "deletion"}),
    (lambda p: (p.parent / ".bashrc").write_text("evil"), {".bashrc": "persistence"}),
    (lambda p: (p / "CLAUDE.md").write_text("do"), {"project/CLAUDE.md": "persistence"}),
    (lambda p: os.mkfifo(p / "pipe"), {"project/pipe": "special"}),
    (lambda p: ((p / "s").write_text("x"), (p / "s").chmod(0o4755)), {"project/s": "special"}),
    (lambda p: ((p / "a.txt").write_text("new"), (p / "a.txt").chmod(0o666)), {"project/a.txt": "mode"}),
    (lambda p: ((p / "a.txt").write_text("new"), (p / "a.txt").chmod(0o600)), {"project/a.txt": "edit"}),
]


CONFLICTS: list[tuple[Change, Change, str]] = [
    (lambda p: (p / "a.txt").write_text("task"), lambda p: (p / "a.txt").write_text("person"), "changed"),
    (lambda p: (p / "a.txt").write_text("task"), lambda p: (p / "a.txt").unlink(), "removed"),
    (lambda p: (p / "a.txt").unlink(), lambda p: (p / "a.txt").write_text("person"), "changed"),
    (lambda p: (p / "a.txt").write_text("task"), lambda p: (p / "a.txt").chmod(0o600), "mode"),
    (lambda p: (p / "new").write_text("task"), lambda p: (p / "new").write_text("person"), "appeared"),
    (lambda p: shutil.rmtree(p / "src"), lambda p: (p / "src/own.py").write_text("person"), "appeared"),
]


NO_CONFLICTS: list[Change] = [
    lambda p: os.utime(p / "a.txt", (5, 5)),
    lambda p: ((p / "tmp").write_text("one\n"), (p / "tmp").chmod(0o644), (p / "tmp").rename(p / "a.txt")),
    lambda p: (p / "b.txt").write_text("elsewhere"),
]


def in_project(change: Callable[[Path], object]) -> Change:
    return lambda home: change(home / "project")


@pytest.mark.parametrize(("change", "expected"), CLASSES)
def test_classes(world: World, change: Change, expected: dict[str, str]) -> None:
    """Each kind of change has its class, and only silent ones need no consent."""
    found = look(view_of(world, in_project(change)), world)
    assert classes(found, world) == expected
    assert found.silent is (set(expected.values()) == {"silent"})
    assert found.conflicts == ()


def test_a_moved_file_says_where_it_is_now(world: World) -> None:
    """The path is a field of its own: whoever shows it shortens it."""
    found = look(view_of(world, in_project(lambda p: (p / "a.txt").rename(p / "c.txt"))), world)
    moved = {one.path: (one.reason, one.moved_to) for one in found.classes}
    assert moved[f"{world.project}/a.txt"] == ("is moved to", f"{world.project}/c.txt")
    assert moved[f"{world.project}/c.txt"] == ("", None)


def test_equal_files_that_move_have_places_of_their_own(world: World) -> None:
    """Two folders are merged: what was in them is moved, each to where it is, and nothing of it is new."""
    for name in ("a/one", "b/uno", "a/two", "b/two"):
        (world.project / "from" / name).parent.mkdir(parents=True, exist_ok=True)
        (world.project / "from" / name).write_text("the same\n")

    def merge(project: Path) -> None:
        (project / "merged").mkdir()
        for old, new in (("a/one", "one"), ("b/uno", "uno"), ("a/two", "two"), ("b/two", "two-1")):
            (project / "from" / old).rename(project / "merged" / new)
        for name in ("from/a", "from/b", "from"):
            (project / name).rmdir()

    found = look(view_of(world, in_project(merge)), world)
    moved = {one.path: one.moved_to for one in found.classes if one.moved_to and one.size_before}
    assert sorted(moved.values()) == [f"{world.project}/merged/{name}" for name in ("one", "two", "two-1", "uno")]
    assert moved[f"{world.project}/from/a/one"] == f"{world.project}/merged/one"
    silent = {one.path for one in found.classes if one.change_class is ChangeClass.SILENT}
    assert silent == implied(found.classes)


def test_a_moved_file_has_no_diff(world: World) -> None:
    """Nothing of it is lost or new at either end; what is beside it is shown as ever."""

    def change(project: Path) -> None:
        """Moves one, makes one."""
        (project / "a.txt").rename(project / "c.txt")
        (project / "n.txt").write_text("new\n")

    view = view_of(world, in_project(change))
    review = review_of(look(view, world), "t", RealFiles(), Union(view.strata()))
    assert {Path(one.path).name: bool(one.diff) for one in review.changes} == {
        "a.txt": False,
        "c.txt": False,
        "n.txt": True,
    }


def test_what_is_unchanged_in_the_end_is_no_change(world: World) -> None:
    """A file that was edited and edited back is in the layer, and not in the difference."""

    def change(project: Path) -> None:
        """Edits, and edits back."""
        text, seen = (project / "a.txt").read_text(), (project / "a.txt").stat()
        (project / "a.txt").write_text("other")
        (project / "a.txt").write_text(text)
        os.utime(project / "a.txt", ns=(seen.st_atime_ns, seen.st_mtime_ns))

    assert look(view_of(world, in_project(change)), world).empty


@pytest.mark.parametrize(("task", "person", "reason"), CONFLICTS)
def test_what_the_person_changed_meanwhile_is_a_conflict(
    world: World, task: Change, person: Change, reason: str
) -> None:
    """It is named with its reason, and what else the task did can still be applied."""
    place = view_of(world, in_project(lambda p: (task(p), (p / "other").write_text("x"))))
    person(world.project)
    found = look(place, world)
    first, *held = [one.reason for one in reversed(found.conflicts)]
    assert reason in first and set(held) <= {"it holds what is in conflict"}
    assert f"{world.project}/other" in {change.path for change in found.changes}
    assert not found.silent


@pytest.mark.parametrize("person", NO_CONFLICTS)
def test_the_same_content_is_no_conflict(world: World, person: Change) -> None:
    """Times and inodes may change: what counts is what is in a file."""
    (world.project / "a.txt").chmod(0o644)
    place = view_of(world, in_project(lambda p: (p / "a.txt").write_text("task")))
    person(world.project)
    found = look(place, world)
    assert found.conflicts == () and classes(found, world) == {"project/a.txt": "edit"}


def test_the_time_of_a_link_stands_in_nobodys_way(world: World) -> None:
    """The person's own link stays where the task did no more to it than to touch it."""
    link = world.project / "l"
    link.symlink_to("a.txt")
    place = view_of(world, in_project(lambda p: (p / "n.txt").write_text("x")))
    upper = place.upper("task", 0) / "project" / "l"
    upper.symlink_to("a.txt")
    state = StateRecord.of(now_at(f"{world.project}", "l"))
    assert state is not None
    append_base(place.base_file(), [Base(path=str(link), was=state, changed_ns=link.lstat().st_ctime_ns)])
    assert classes(look(place, world), world) == {"project/l": "silent", "project/n.txt": "silent"}
    link.unlink()
    link.symlink_to("b.txt")
    found = look(place, world)
    assert found.conflicts == () and classes(found, world) == {"project/n.txt": "silent"}


def test_what_is_already_as_wanted_is_done(world: World) -> None:
    """Where the person made the same change there is nothing left to do."""
    place = view_of(world, in_project(lambda p: ((p / "a.txt").write_text("same"), (p / "d").mkdir())))
    (world.project / "a.txt").write_text("same")
    (world.project / "d").mkdir()
    found = look(place, world)
    assert {one.change_class for one in found.classes} <= {ChangeClass.SILENT}
    assert found.conflicts == ()


def test_a_persons_new_file_survives_a_replaced_file_list(world: World) -> None:
    """A name that the task took away and the person made anew is theirs: the task's part of it is done."""
    place = view_of(world, in_project(lambda p: (p / "a.txt").unlink()))
    (world.project / "a.txt").unlink()
    assert look(place, world).empty


def test_the_digest_is_that_of_the_exact_difference(world: World) -> None:
    """Another new content, another old content, another mode: another digest."""
    digests = {
        look(view_of(world, in_project(lambda p: (p / "a.txt").write_text("1")), f"t{n}"), world).digest
        for n in (1, 2)
    }
    other = look(view_of(world, in_project(lambda p: (p / "a.txt").write_text("2")), "t3"), world).digest
    (world.project / "a.txt").write_text("old content is another\n")
    third = look(view_of(world, in_project(lambda p: (p / "a.txt").write_text("1")), "t4"), world).digest
    assert len({*digests, other, third}) == len(digests) + 2


def test_artoos_own_files_are_never_applied(world: World) -> None:
    """They are out of reach: with a yes a task could rewrite the record of what it did."""
    place = view_of(world, in_project(lambda p: (p / "n").write_text("x")))
    inside = place.upper("task", 0) / ".artoo"
    inside.mkdir()
    (inside / "config.yaml").write_text("allow: []\n")
    found = look(place, world)
    assert "config.yaml" in " ".join(one.path for one in found.conflicts)
    assert classes(found, world) == {"project/n": "silent"}
