"""Any bytes in a name, very long paths, special files, attributes, links, two file systems, git."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from commit_world import TASK, CommitWorld, tree, write
from scenes import change, fill
from victim import killed

from artoo.contracts.changes import Node
from artoo.contracts.errors import SandboxError
from artoo.workspace.changes.effect import Effect
from artoo.workspace.commit import apply, records_of, recover, undo
from artoo.workspace.fs.stat import NodeState
from artoo.workspace.git.act import GitAct
from artoo.workspace.git.state import RefChange

ODD = (b"new\nline", b"tab\t", b"back\\slash", b"\xff\xfe", "\u202etxt.exe".encode(), b" ", b"-rf", b"a" * 255)

DEPTH = 40


def test_names_may_hold_any_bytes(world: CommitWorld) -> None:
    """Files and directories; they are replaced, made, removed and restored."""

    def odd(project: Path, text: str) -> None:
        for name in ODD:
            path = os.path.join(os.fsencode(project), name)
            os.makedirs(path, exist_ok=True)
            Path(os.fsdecode(os.path.join(path, name))).write_text(text, encoding="utf-8")

    world.begin(lambda p: odd(p, "old"))
    before = world.tree(times=True)
    assert world.apply(lambda p: odd(p, "new!")).applied
    assert world.tree(times=True) == tree(world.made, times=True)
    assert undo(world.artoo_home, TASK).refused == ()
    assert world.tree(times=True) == before


def deep(root: Path) -> int:
    """Make a directory at a path that is longer than a system call takes, and return it open."""
    here = os.open(root, os.O_RDONLY)
    for _ in range(DEPTH):
        os.mkdir("d" * 200, dir_fd=here)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    return here


def test_paths_may_be_longer_than_the_system_takes(world: CommitWorld) -> None:
    """Each is reached in steps."""
    world.begin()
    world.made.mkdir()
    os.close(deep(world.project))
    here = deep(world.made)
    descriptor = os.open("file", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here)
    os.write(descriptor, b"deep")
    state = os.fstat(descriptor)
    os.close(descriptor)
    os.close(here)
    relative = b"/".join([b"d" * 200] * DEPTH + [b"file"])
    after = NodeState(Node.FILE, 0o644, state.st_uid, state.st_gid, 4, state.st_mtime_ns, 0, state.st_ino)
    path = os.fsencode(world.project) + b"/" + relative
    source = os.fsencode(world.made) + b"/" + relative
    assert world.apply_effects(
        [Effect(os.fsencode(world.project), path, path.decode(), None, after, source)]
    ).applied
    listed = subprocess.run(["find", world.project, "-name", "file"], capture_output=True, text=True, check=True)
    assert listed.stdout.strip().endswith("/file")
    assert undo(world.artoo_home, TASK).refused == ()
    listed = subprocess.run(["find", world.project, "-type", "f"], capture_output=True, text=True, check=True)
    assert listed.stdout == ""
    for root in (world.project, world.made):
        subprocess.run(["rm", "-rf", root], check=True)


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK])
def test_special_files_are_refused_but_can_be_removed(world: CommitWorld, kind: int) -> None:
    """A pipe that the task made is not made again; one of the user's comes back at an undo."""
    world.begin(lambda p: os.mknod(p / "old", kind | 0o600))
    before = world.tree(times=True, inodes=True)
    with pytest.raises(SandboxError, match=r"which artoo does not create.*Apply other paths"):
        world.apply(lambda p: os.mknod(p / "new", kind | 0o600))
    assert world.apply(lambda p: (p / "old").unlink()).applied
    assert not os.path.lexists(world.project / "old")
    assert undo(world.artoo_home, TASK).refused == ()
    assert world.tree(times=True, inodes=True) == before


def test_access_lists_are_applied_and_restored(world: CommitWorld) -> None:
    """Those that a directory hands down too."""
    world.begin(lambda p: ((p / "d").mkdir(), (p / "f").write_text("x")))
    try:
        for options in (["-m", "u:1234:rwx"], ["-d", "-m", "u:1234:rwx"]):
            subprocess.run(["setfacl", *options, world.project / "d"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no access lists here")
    before = world.tree(times=True)

    def act(made: Path) -> None:
        for options in (["-m", "u:1234:rwx"], ["-d", "-m", "u:1234:rwx"]):
            subprocess.run(["setfacl", *options, made / "d"], check=True)
        (made / "d" / "new").write_text("inherits")
        subprocess.run(["setfacl", "-m", "u:4321:r", made / "f"], check=True)

    assert world.apply(act).applied
    assert undo(world.artoo_home, TASK).refused == ()
    assert world.tree(times=True) == before


def test_a_root_is_never_removed_or_replaced(world: CommitWorld) -> None:
    """Its mode may change."""
    world.begin()
    assert world.apply(lambda p: p.chmod(0o711)).applied
    (root,) = world.work(lambda p: p.chmod(0o700))
    with pytest.raises(SandboxError, match="root of the workspace"):
        world.apply_effects([root._replace(after=None, in_place=False)])
    undo(world.artoo_home, TASK)


@pytest.fixture
def two_disks(tmp_path: Path) -> Iterator[CommitWorld]:
    """artoo's home lies on another file system."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="artoo-test-") as other:
        if os.stat(other).st_dev == tmp_path.stat().st_dev:
            pytest.skip("there is only one file system here")
        yield CommitWorld(tmp_path, Path(other))


def test_contents_cross_file_systems(two_disks: CommitWorld) -> None:
    """Nothing staged is left in the project."""
    world = two_disks
    world.begin(fill)
    before = world.tree(times=True)
    assert world.apply(change).applied
    assert world.tree(times=True) == tree(world.made, times=True)
    assert undo(world.artoo_home, TASK).refused == ()
    assert world.tree(times=True) == before
    assert world.records() == []


def test_a_full_disk_is_noticed_before_anything_changed(tmp_path: Path) -> None:
    """A real one of 2 MB, on which the project and artoo's home lie."""
    if os.geteuid() != 0:
        pytest.skip("mounts a file system")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", tmp_path], check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        world = CommitWorld(tmp_path)
        world.begin(lambda p: (p / "old").write_text("old"))
        before = world.tree(times=True, inodes=True)
        with tempfile.TemporaryDirectory() as other:
            world.made = Path(other) / "made"
            effects = world.work(lambda p: [write(p / name, "x" * 700_000) for name in ("old", "b", "c", "d")])
            with pytest.raises(SandboxError, match=r"No space left.*as before"):
                world.apply_effects(effects)
        assert world.tree(times=True, inodes=True) == before
        assert world.records() == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_hard_links_become_files_of_their_own(world: CommitWorld) -> None:
    """What replaces a file with other names leaves these names alone; undo restores the contents."""
    world.begin(lambda p: ((p / "a").write_text("old"), os.link(p / "a", p / "b"), os.link(p / "a", p / "c")))
    before = world.tree(times=True)

    def act(made: Path) -> None:
        for name in ("a", "b"):
            write(made / name, "changed")

    assert world.apply(act).applied
    assert [(world.project / name).read_text() for name in "abc"] == ["changed", "changed", "old"]
    assert undo(world.artoo_home, TASK).refused == ()
    assert world.tree(times=True) == before


def git(project: Path, *arguments: str) -> str:
    names = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    done = subprocess.run(
        ["git", "-C", project, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **names, "GIT_CONFIG_GLOBAL": "/dev/null"},
    )
    return done.stdout.strip()


def repository(project: Path) -> GitAct:
    """Make a repository with two commits, the second one on no branch; return the act that brings it to `side`."""
    git(project, "init", "-q", "-b", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "one")
    first = git(project, "rev-parse", "HEAD")
    second = git(project, "commit-tree", "-p", first, "-m", "two", "HEAD^{tree}")
    git(project, "branch", "side", first)
    name = "refs/heads/side"
    return GitAct(
        task_id=TASK,
        git="/usr/bin/git",
        git_dir=str(project / ".git"),
        object_format="sha1",
        heads=("ref: refs/heads/main", "ref: refs/heads/main"),
        commits=(first, first),
        refs=(RefChange(name=name, old=first, new=second, group=name),),
        needs=(str(project / "a"),),
        shown=((name, f"{project}/.git/{name}"),),
    )


def only_a(world: CommitWorld) -> list[Effect]:
    return [one for one in world.work(lambda p: write(p / "a", "new")) if one.path.endswith(b"/a")]


def test_git_moves_with_the_files_and_back(world: CommitWorld) -> None:
    """Also when the process dies after git moved, and before it was noted."""
    world.begin()
    act = repository(world.project)
    effects = only_a(world)

    def side() -> str:
        return git(world.project, "log", "-1", "--format=%s", "side")

    fuse = 1
    while not killed(lambda: apply(effects, [act], task_id=TASK, undo_home=world.undo_home), fuse):
        recover(world.artoo_home)
        done = any(one.done for one in records_of(world.undo_home, TASK))
        assert (side(), (world.project / "a").exists()) == (("two", True) if done else ("one", False))
        if done:
            undo(world.artoo_home, TASK)
        fuse += 3
    assert side() == "two"
    report = undo(world.artoo_home, TASK)
    assert report.refused == ()
    assert set(report.restored) == {str(world.project / "a"), f"{world.project}/.git/refs/heads/side"}
    assert side() == "one"
    assert not (world.project / "a").exists()


def test_a_repository_that_the_user_moved_since_keeps_its_files(world: CommitWorld) -> None:
    """Refs and the files that belong to them stay, are named, and can be undone later."""
    world.begin()
    act = repository(world.project)
    assert apply(only_a(world), [act], task_id=TASK, undo_home=world.undo_home).applied
    git(world.project, "branch", "-f", "side", git(world.project, "commit-tree", "-m", "mine", "HEAD^{tree}"))
    report = undo(world.artoo_home, TASK)
    assert {one.path for one in report.refused} == {str(world.project / ".git"), str(world.project / "a")}
    assert (world.project / "a").read_text() == "new"
    git(world.project, "branch", "-f", "side", act.refs[0].new)
    assert undo(world.artoo_home, TASK).refused == ()
    assert not (world.project / "a").exists()


def test_files_are_taken_back_when_git_refuses(world: CommitWorld) -> None:
    """The user moved the ref after the review: nothing is applied."""
    world.begin()
    act = repository(world.project)
    effects = only_a(world)
    git(world.project, "branch", "-f", "side", git(world.project, "commit-tree", "-m", "mine", "HEAD^{tree}"))
    with pytest.raises(SandboxError, match="moved since"):
        apply(effects, [act], task_id=TASK, undo_home=world.undo_home)
    assert not (world.project / "a").exists()
    assert world.records() == []
