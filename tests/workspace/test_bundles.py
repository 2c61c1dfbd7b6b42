"""A change set that was made on one machine means the same on another, or is refused there."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from laid_out import World, workspace_of

from artoo.cluster import change_bundle as bundles
from artoo.cluster.change_bundle import BundleManifest, Item, PathState, StaysHere, pack, unpack
from artoo.contracts.changes import Conflict, Node
from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ChangeClass
from artoo.workspace import commit as commits
from artoo.workspace.changes.change_set import ChangeSet
from artoo.workspace.directory import WorkspaceDirectory, Workspaces
from artoo.workspace.settlement.service import opened

Change = Callable[[Path], object]

START = {"a.txt": "one\n", "b.txt": "two\n", "src/m.py": "x = 1\n", "src/n.py": "y = 2\n", "src/deep/o.py": "z\n"}


@pytest.fixture(name="world")
def made(tmp_path: Path) -> World:
    """The machine that makes change sets."""
    return filled(World(tmp_path.resolve() / "home"))


def filled(world: World, start: dict[str, str] = START) -> World:
    """A project with these files, and a workspace."""
    world.roots.workspace.mkdir(exist_ok=True, parents=True)
    world.project.mkdir(exist_ok=True, parents=True)
    for name, text in start.items():
        path = world.project / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return world


@pytest.fixture
def other(tmp_path: Path) -> World:
    """The machine that gets them: another home, the same project, in a group that may write."""
    there = filled(World(tmp_path.resolve() / "elsewhere" / "me"))
    for path in (there.project, *there.project.rglob("*")):
        path.chmod(path.stat().st_mode | 0o020)
    return there


def packed(place: WorkspaceDirectory, world: World) -> io.BytesIO:
    """The bundle of a workspace."""
    bundle = io.BytesIO()
    with opened(place, world.artoo_home) as settlement:
        assert settlement is not None
        pack(settlement, settlement.review(), bundle)
    bundle.seek(0)
    return bundle


def brought(bundle: io.BytesIO, world: World) -> WorkspaceDirectory:
    """The workspace that a bundle becomes on a machine."""
    place = Workspaces(world.artoo_home).directory("task-1")
    with place.locked():
        unpack(bundle, place, world.roots, (world.project, world.roots.workspace))
    assert place.is_brought
    return place


def change_set(place: WorkspaceDirectory, world: World) -> ChangeSet:
    with opened(place, world.artoo_home) as settlement:
        assert settlement is not None
        return settlement.review()


def applied(place: WorkspaceDirectory, world: World) -> None:
    """All of it takes effect."""
    with opened(place, world.artoo_home) as settlement:
        assert settlement is not None
        found = settlement.review()
        assert not found.all_conflicts
        assert found.empty or settlement.apply(found).state == "applied"


def tree(folder: Path) -> dict[str, object]:
    """What is in a directory: contents, targets, and who may execute."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_dir():
            found[name] = "/"
        else:
            found[name] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return found


def work(home: Path) -> None:
    """A bit of everything."""
    project = home / "project"
    (project / "a.txt").write_text("edited\n")
    (project / "b.txt").unlink()
    (project / "new" / "deep").mkdir(parents=True)
    (project / "new" / "deep" / "f").write_bytes(b"\0f" * 700_000)
    (project / "new" / "run.sh").write_text("#!/bin/sh\n")
    (project / "new" / "run.sh").chmod(0o755)
    (project / "src" / "m.py").chmod(0o755)
    (project / "link").symlink_to("a.txt")
    shutil.rmtree(project / "src" / "deep")
    (project / "src" / "deep").write_text("a file by now\n")
    (home / "artoo_workspace" / "report.md").write_text("done\n")


def test_it_does_there_what_it_does_here(world: World, other: World) -> None:
    """Edits, deletions, moves of kind, modes, links and new files come out the same; undo puts everything back."""
    before = tree(other.project)
    place = workspace_of(world, work)
    there = brought(packed(place, world), other)
    classes = {one.change_class for one in change_set(there, other).all_classes}
    assert classes == {one.change_class for one in change_set(place, world).all_classes}
    applied(place, world)
    applied(there, other)
    assert tree(other.project) == tree(world.project)
    assert (other.roots.workspace / "report.md").read_text() == "done\n"
    modes = [(other.project / name).stat().st_mode & 0o777 for name in ("a.txt", "src/m.py")]
    assert modes == [0o664, 0o775]  # this machine's, and the bits that the task changed
    commits.undo(other.artoo_home, "task-1")
    assert tree(other.project) == before


NAMES = ("a", "b", "d/x", "d/y", "d/e/z", "n")
CONTENT = st.one_of(st.none(), st.sampled_from(["", "1\n", "2\n"]))


@settings(max_examples=8, deadline=None)
@given(
    start=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["", "1\n", "2\n"])),
    wanted=st.dictionaries(st.sampled_from(NAMES), CONTENT),
    here=st.dictionaries(st.sampled_from(NAMES), CONTENT),
)
def test_whatever_it_is(
    tmp_path_factory: pytest.TempPathFactory,
    start: dict[str, str],
    wanted: dict[str, str | None],
    here: dict[str, str | None],
) -> None:
    """On files as the task found them it does what the task did; a file that is not so is never overwritten."""

    def change(home: Path) -> None:
        _change(home / "project", wanted)

    folder = tmp_path_factory.mktemp("bundle").resolve()
    maker, same, differing = (filled(World(folder / name), start) for name in ("maker", "same", "differing"))
    _change(differing.project, here)
    mine = tree(differing.project)
    place = workspace_of(maker, change)
    bundle = packed(place, maker)
    applied(place, maker)
    applied(brought(bundle, same), same)
    assert tree(same.project) == tree(maker.project)
    bundle.seek(0)
    found = change_set(brought(bundle, differing), differing)
    made, began = tree(maker.project), tree(filled(World(folder / "began"), start).project)
    clashes = {str(Path(one.path).relative_to(differing.project)) for one in found.conflicts}
    touched = {str(Path(one.path).relative_to(differing.project)) for one in found.changes}
    for name in {*made, *began}:
        if made.get(name) != began.get(name) and mine.get(name) not in (began.get(name), made.get(name)):
            assert name in clashes and name not in touched
    shutil.rmtree(folder)


def _change(project: Path, wanted: dict[str, str | None]) -> None:
    for name, text in wanted.items():
        path = project / name
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def test_conflicts_are_shown(world: World, other: World) -> None:
    """What is otherwise there, or there already, is a conflict with its reason; what is gone already is none."""
    (other.project / "a.txt").write_text("mine\n")
    (other.project / "b.txt").unlink()
    (other.project / "new").mkdir()
    (other.project / "new" / "run.sh").write_text("mine too\n")
    found = change_set(brought(packed(workspace_of(world, work), world), other), other)
    told = {Path(one.path).name: one.reason for one in found.conflicts}
    assert "changed since" in told["a.txt"]
    assert "appeared since" in told["run.sh"]
    assert "b.txt" not in told  # it is gone already, as it should be


def test_what_is_there_already_is_no_conflict(world: World, other: World) -> None:
    """A machine that got the same files another way has nothing left to do."""
    bundle = packed(workspace_of(world, work), world)
    first = brought(bundle, other)
    applied(first, other)
    bundle.seek(0)
    assert change_set(brought(bundle, other), other).empty


def git(project: Path, *arguments: str) -> str:
    """Git, as nobody in particular."""
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(project), *arguments],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_a_commit_travels_to_another_clone(world: World, other: World, tmp_path: Path) -> None:
    """A commit that was made in one clone is the head of the other, whose own reflog stays; git finds all whole."""
    origin = tmp_path / "origin.git"
    git(world.project, "init", "-q", "-b", "main")
    git(world.project, "add", ".")
    git(world.project, "commit", "-q", "-m", "begin")
    subprocess.run(["git", "clone", "-q", "--bare", str(world.project), str(origin)], check=True)
    shutil.rmtree(world.project)
    shutil.rmtree(other.project)
    for each in (world, other):
        subprocess.run(["git", "clone", "-q", str(origin), str(each.project)], check=True)

    def commit(home: Path) -> None:
        (home / "project" / "a.txt").write_text("committed\n")
        git(home / "project", "commit", "-q", "-am", "change a")

    place = workspace_of(world, commit)
    there = brought(packed(place, world), other)
    found = change_set(there, other)
    assert not found.conflicts
    assert {one.change_class for one in found.all_classes} <= {ChangeClass.SILENT, ChangeClass.EDIT}
    applied(place, world)
    applied(there, other)
    assert git(other.project, "rev-parse", "HEAD") == git(world.project, "rev-parse", "HEAD")
    assert git(other.project, "status", "--porcelain") == ""
    git(other.project, "fsck", "--strict")


def _outside(home: Path) -> None:
    (home / "notes.txt").write_text("n")


def _pipe(home: Path) -> None:
    os.mkfifo(home / "project" / "pipe")


def _attribute(home: Path) -> None:
    path = home / "project" / "new.txt"
    path.write_text("n")
    os.setxattr(path, "user.k", b"v")


def _big(home: Path) -> None:
    (home / "project" / "big").write_bytes(b"x" * 5_000)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_outside, "outside of project and output folder"),
        (_pipe, "only its own machine has"),
        (_attribute, "attributes"),
        (_big, "at most"),
    ],
)
def test_what_stays(world: World, monkeypatch: pytest.MonkeyPatch, change: Change, reason: str) -> None:
    """What means nothing elsewhere, or is too large, stays, all of it, and says why."""
    monkeypatch.setattr(bundles, "MOST_BYTES", 4_000)
    with pytest.raises(StaysHere, match=reason):
        packed(workspace_of(world, change), world)


def test_a_conflict_stays(world: World) -> None:
    """What the person has changed on the machine that made it is settled there."""
    place = workspace_of(world, work)
    (world.project / "a.txt").write_text("mine\n")
    with pytest.raises(StaysHere, match=r"a\.txt"):
        packed(place, world)


FILE = PathState(node=Node.FILE, mode=0o644, size=2)


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("../outside", b"ab", "leads out"),
        ("/etc/passwd", b"ab", "leads out"),
        ("x/../../y", b"ab", "leads out"),
        (r"x\x00y", b"ab", "leads out"),
        ("d/" * 5_000 + "x", b"ab", "nests deeper"),
        ("short", b"a", "less than it says"),
        ("long", b"abc", "more than it says"),
    ],
)
def test_a_bad_bundle_is_refused(other: World, path: str, content: bytes, reason: str) -> None:
    """A bundle that somebody else wrote leads nowhere, and leaves no workspace."""
    before = tree(other.home)
    manifest = BundleManifest(items=(Item(where="project", path=path, was=None, now=FILE),))
    with pytest.raises(SandboxError, match=reason):
        brought(io.BytesIO(manifest.model_dump_json().encode() + b"\n" + content), other)
    assert not Workspaces(other.artoo_home).directory("task-1").exists
    after = {name: what for name, what in tree(other.home).items() if not name.startswith(".artoo")}
    assert after == before


@pytest.mark.parametrize(
    ("thing", "reason"),
    [
        ({"node": "link", "target": r"x\x00y"}, "no path"),
        ({"node": "link", "target": ""}, "no path"),
        ({"node": "file", "mtime_ns": 1 << 95}, "less than or equal"),
        ({"node": "file", "mtime_ns": -(1 << 95)}, "greater than or equal"),
    ],
)
def test_a_thing_that_no_system_keeps_is_refused(other: World, thing: dict[str, object], reason: str) -> None:
    """A link without a target, a time beyond all times: it is the bundle that is bad; no workspace is left."""
    items = [{"where": "project", "path": "x", "was": None, "now": thing}]
    with pytest.raises(SandboxError, match=reason):
        brought(io.BytesIO(json.dumps({"format": 1, "items": items}).encode() + b"\n"), other)
    assert not Workspaces(other.artoo_home).directory("task-1").exists


def test_a_deletion_makes_no_directories(world: World, other: World) -> None:
    """What was deleted there is gone here, with its directory: that does not come back empty."""
    shutil.rmtree(other.project / "src")
    bundle = packed(workspace_of(world, lambda home: (home / "project" / "src" / "deep" / "o.py").unlink()), world)
    found = change_set(brought(bundle, other), other)
    assert (found.effects, found.conflicts) == ((), ())


def test_links_in_a_bundle_lead_nowhere(other: World) -> None:
    """A bundle that makes a link and then writes below it is refused: nothing is written through links."""
    link = PathState(node=Node.LINK, target=str(other.home))
    items = (
        Item(where="project", path="l", was=None, now=link),
        Item(where="project", path="l/x", was=None, now=FILE),
    )
    with pytest.raises(SandboxError):
        brought(io.BytesIO(BundleManifest(items=items).model_dump_json().encode() + b"\nab"), other)
    assert not (other.home / "x").exists()


def test_a_link_of_this_machine_is_not_followed(world: World, other: World) -> None:
    """Where this machine has a link instead of a directory, what was made in the directory is a conflict."""
    away = other.home / "away"
    (other.project / "src").rename(away)
    (other.project / "src").symlink_to(away)

    def change(home: Path) -> None:
        (home / "project" / "src" / "p.py").write_text("new\n")

    found = change_set(brought(packed(workspace_of(world, change), world), other), other)
    assert [Path(one.path).name for one in found.conflicts] == ["src", "p.py"]
    assert isinstance(found.conflicts[0], Conflict)
    assert not (away / "p.py").exists()
