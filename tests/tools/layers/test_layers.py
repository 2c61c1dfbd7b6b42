"""A governed task works in copies of its own; what it made reaches the project only by a merge."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from artoo.contracts.agents import SubmittedChange
from artoo.contracts.changes import ChangeKind
from artoo.contracts.errors import SandboxError
from artoo.tools.layers import copying
from artoo.tools.layers.copying import CopyLimits
from artoo.tools.layers.layer import PROJECT, WORKSPACE, Layer, Layers
from artoo.tools.layers.merge import Proposal, merge, propose
from artoo.tools.layers.submission import submit
from artoo.world.recover import recover
from artoo.world.undo import undo

TASK = "board-task-1"


@dataclass(frozen=True, slots=True)
class Ground:
    """A home with layers, a project and a workspace."""

    home: Path
    project: Path
    workspace: Path

    def begin(self, number: int = 1, **limits: int) -> Layer:
        return Layers(self.home, CopyLimits(**limits)).begin(TASK, number, self.project, self.workspace)

    def submitted(self, layer: Layer) -> Proposal:
        submit(layer)
        return propose(layer, self.home)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """A small project: a file, a directory, a link, two names of one file."""
    place = tmp_path.resolve()
    monkeypatch.setenv("HOME", str(place / "user"))
    found = Ground(place / "home", place / "user" / "project", place / "user" / "out")
    for directory in (found.home, found.project / "sub", found.workspace):
        directory.mkdir(parents=True)
    (found.project / "a.txt").write_text("one\n")
    (found.project / "sub" / "b.txt").write_text("b\n")
    (found.project / "link").symlink_to("a.txt")
    (found.project / "first").write_text("same\n")
    os.link(found.project / "first", found.project / "second")
    return found


def seen(place: Path) -> dict[str, str]:
    """Every path below a directory with what it holds."""
    found: dict[str, str] = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = f"{stat.S_IMODE(path.stat().st_mode):o} {path.read_text()}"
        else:
            found[name] = "dir"
    return found


def shown(proposal: Proposal) -> dict[str, tuple[ChangeKind, bool]]:
    """Path → what happens, and whether the operator must agree."""
    return {one.path: (one.change, one.asks is not None) for one in proposal.shown}


def git(place: Path, *words: str) -> str:
    """Runs git as somebody."""
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", *identity, *words], cwd=place, check=True, capture_output=True, text=True).stdout


def test_copy_is_the_project(ground: Ground) -> None:
    """A layer holds the project's paths, contents, modes and links, and an empty workspace."""
    (ground.project / "run.sh").write_text("true\n")
    (ground.project / "run.sh").chmod(0o755)
    layer = ground.begin()
    assert seen(layer.copy_of(PROJECT)) == seen(ground.project)
    assert seen(layer.copy_of(WORKSPACE)) == {}
    first, second = (layer.copy_of(PROJECT) / name for name in ("first", "second"))
    assert first.stat().st_ino == second.stat().st_ino


def test_copy_is_apart(ground: Ground) -> None:
    """What happens in the layer leaves the project as it was, hard links and all."""
    before = seen(ground.project)
    copy = ground.begin().copy_of(PROJECT)
    (copy / "first").write_text("other\n")
    (copy / "a.txt").unlink()
    shutil.rmtree(copy / "sub")
    assert seen(ground.project) == before


def test_guide_comes_along(ground: Ground) -> None:
    """The operator's instructions in the workspace stand in the layer's workspace too, and nothing else does."""
    (ground.workspace / "AGENTS.md").write_text("be brief\n")
    (ground.workspace / "old.csv").write_text("1\n")
    layer = ground.begin()
    assert list(seen(layer.copy_of(WORKSPACE))) == ["AGENTS.md"]
    assert not ground.submitted(layer).changes


def test_secrets_stay_where_they_are(ground: Ground) -> None:
    """Credentials and artoo's own files below the project are not copied, and their absence is no deletion."""
    user = ground.project.parent
    (user / ".ssh").mkdir()
    (user / ".ssh" / "key").write_text("secret")
    wide = Ground(user / ".artoo", user, user / "out")
    wide.home.mkdir()
    layer = wide.begin()
    assert ".ssh" not in seen(layer.copy_of(PROJECT))
    assert ".artoo" not in seen(layer.copy_of(PROJECT))
    assert not wide.submitted(layer).changes


def test_untouched_is_no_change(ground: Ground) -> None:
    """A layer in which nothing happened, or only times changed, submits nothing."""
    layer = ground.begin()
    os.utime(layer.copy_of(PROJECT) / "a.txt", (1, 1))
    proposal = ground.submitted(layer)
    assert not proposal.changes
    assert merge(layer, ground.home, proposal.digest).applied


def test_new_files_need_no_operator(ground: Ground) -> None:
    """New ordinary files in project and workspace merge on a review alone."""
    layer = ground.begin()
    (layer.copy_of(PROJECT) / "new" / "deep").mkdir(parents=True)
    (layer.copy_of(PROJECT) / "new" / "deep" / "n.txt").write_text("n\n")
    (layer.copy_of(WORKSPACE) / "report.md").write_text("# r\n")
    proposal = ground.submitted(layer)
    assert not proposal.asks
    assert merge(layer, ground.home, proposal.digest).applied
    assert (ground.project / "new/deep/n.txt").read_text() == "n\n"
    assert (ground.workspace / "report.md").read_text() == "# r\n"


def test_losses_need_the_operator(ground: Ground) -> None:
    """Overwriting, deleting, a mode, and a start-up file are what the gate would ask about, with reasons."""
    layer = ground.begin()
    copy = layer.copy_of(PROJECT)
    (copy / "a.txt").write_text("two\n")
    shutil.rmtree(copy / "sub")
    (copy / "first").chmod(0o600)
    (copy / ".envrc").write_text("evil\n")
    proposal = ground.submitted(layer)
    assert shown(proposal) == {
        ".envrc": (ChangeKind.CREATED, True),
        "a.txt": (ChangeKind.OVERWRITTEN, True),
        "first": (ChangeKind.METADATA, True),
        "second": (ChangeKind.METADATA, True),
        "sub": (ChangeKind.DELETED, True),
        "sub/b.txt": (ChangeKind.DELETED, True),
    }
    assert {act.verb for act in proposal.acts} == {"create", "edits", "mode", "delete"}


def test_diffs_are_shown(ground: Ground) -> None:
    """A reviewer sees what changes in small texts, line by line."""
    layer = ground.begin()
    (layer.copy_of(PROJECT) / "a.txt").write_text("two!\n")
    (change,) = ground.submitted(layer).shown
    assert change == SubmittedChange(
        change=ChangeKind.OVERWRITTEN,
        path="a.txt",
        size_before=4,
        size_after=5,
        asks="what is there now is overwritten",
        diff=("@@ -1 +1 @@", "-one", "+two!"),
    )


def test_merge_is_what_the_layer_holds(ground: Ground) -> None:
    """After a merge the project is as the layer was, and undo puts all of it back."""
    before = seen(ground.project)
    layer = ground.begin()
    copy = layer.copy_of(PROJECT)
    (copy / "a.txt").write_text("two\n")
    (copy / "sub" / "b.txt").unlink()
    (copy / "sub" / "c").mkdir()
    (copy / "link").unlink()
    (copy / "link").mkdir()
    (copy / "link" / "x").write_text("x\n")
    (copy / "first").chmod(0o755)
    wanted = seen(copy)
    proposal = ground.submitted(layer)
    assert merge(layer, ground.home, proposal.digest).applied
    assert seen(ground.project) == wanted
    assert not undo(ground.home, TASK).refused
    assert seen(ground.project) == before


def test_merge_twice_is_merge_once(ground: Ground) -> None:
    """A merge whose process died before it was written down may be repeated: nothing is done twice."""
    layer = ground.begin()
    copy = layer.copy_of(PROJECT)
    (copy / "a.txt").write_text("two\n")
    (copy / "n" / "m").mkdir(parents=True)
    (copy / "sub" / "b.txt").unlink()
    assert merge(layer, ground.home, ground.submitted(layer).digest).applied
    after = seen(ground.project)
    again = propose(layer, ground.home)
    assert not again.changes and not again.conflicts
    assert merge(layer, ground.home, again.digest).applied
    assert seen(ground.project) == after


@pytest.mark.parametrize(
    ("meanwhile", "reason"),
    [
        ("echo mine > a.txt", "it was changed since the task began"),
        ("rm a.txt", "it was removed since the task began"),
        ("chmod 600 a.txt", "it was changed since the task began"),
        ("rm a.txt; mkdir a.txt", "it was changed since the task began"),
        ("echo mine > new.txt", "it appeared since the task began"),
        ("rm -r sub", "the directory that should hold it is gone"),
    ],
)
def test_users_changes_win(ground: Ground, meanwhile: str, reason: str) -> None:
    """A path that the user changed since the copy was made is a conflict: nothing at all is merged."""
    layer = ground.begin()
    copy = layer.copy_of(PROJECT)
    (copy / "a.txt").write_text("two\n")
    (copy / "new.txt").write_text("new\n")
    (copy / "sub" / "c.txt").write_text("c\n")
    submit(layer)
    subprocess.run(meanwhile, shell=True, cwd=ground.project, check=True)
    theirs = seen(ground.project)
    proposal = propose(layer, ground.home)
    report = merge(layer, ground.home, proposal.digest)
    assert not report.applied
    assert [conflict.reason for conflict in report.conflicts] == [reason]
    assert seen(ground.project) == theirs


def test_other_changes_of_the_user_do_not_matter(ground: Ground) -> None:
    """What the user did elsewhere, or undid, or did in the same way, is no conflict."""
    layer = ground.begin()
    (layer.copy_of(PROJECT) / "a.txt").write_text("two\n")
    (layer.copy_of(PROJECT) / "same.txt").write_text("same\n")
    submit(layer)
    (ground.project / "mine.txt").write_text("mine\n")
    (ground.project / "same.txt").write_text("same\n")
    os.utime(ground.project / "a.txt", (1, 1))
    proposal = propose(layer, ground.home)
    assert merge(layer, ground.home, proposal.digest).applied
    assert (ground.project / "a.txt").read_text() == "two\n"


def test_deleted_directory_keeps_what_is_the_users(ground: Ground) -> None:
    """A directory that the submission deletes stays, whole, when the user put something into it meanwhile."""
    layer = ground.begin()
    shutil.rmtree(layer.copy_of(PROJECT) / "sub")
    submit(layer)
    (ground.project / "sub" / "mine").write_text("mine\n")
    report = merge(layer, ground.home, propose(layer, ground.home).digest)
    assert not report.applied and report.conflicts
    assert seen(ground.project)["sub/b.txt"]


def test_submission_is_frozen(ground: Ground) -> None:
    """What happens in the layer after it was handed in is not part of what was reviewed, nor merged."""
    layer = ground.begin()
    new = layer.copy_of(PROJECT) / "new.txt"
    new.write_text("reviewed\n")
    digest = ground.submitted(layer).digest
    new.write_text("slipped in\n")
    assert merge(layer, ground.home, digest).applied
    assert (ground.project / "new.txt").read_text() == "reviewed\n"


def test_approval_is_for_one_act(ground: Ground) -> None:
    """An approval of something else merges nothing."""
    layer = ground.begin()
    (layer.copy_of(PROJECT) / "new.txt").write_text("n\n")
    ground.submitted(layer)
    with pytest.raises(SandboxError, match="look at it again"):
        merge(layer, ground.home, "another digest")
    assert not (ground.project / "new.txt").exists()


def test_caches_are_not_submitted(ground: Ground) -> None:
    """Caches that programs make again, and git's own notes alone, are no part of a submission."""
    git(ground.project, "init", "-q")
    git(ground.project, "add", "-A")
    git(ground.project, "commit", "-q", "-m", "x")
    layer = ground.begin()
    copy = layer.copy_of(PROJECT)
    (copy / "sub" / "__pycache__").mkdir()
    (copy / "sub" / "__pycache__" / "b.pyc").write_text("x")
    git(copy, "status")
    assert not ground.submitted(layer).changes


def test_commit_is_merged(ground: Ground) -> None:
    """A commit that a task made arrives in the project's repository, which git finds whole."""
    git(ground.project, "init", "-q")
    git(ground.project, "add", "-A")
    git(ground.project, "commit", "-q", "-m", "mine")
    layer = ground.begin()
    copy = layer.copy_of(PROJECT)
    (copy / "new.txt").write_text("n\n")
    git(copy, "add", "-A")
    git(copy, "commit", "-q", "-m", "theirs")
    git(ground.project, "status")
    proposal = ground.submitted(layer)
    assert not proposal.asks
    assert merge(layer, ground.home, proposal.digest).applied
    assert git(ground.project, "log", "--format=%s").split() == ["theirs", "mine"]
    assert git(ground.project, "status", "--short") == ""
    git(ground.project, "fsck", "--strict")


def test_too_much_is_refused(ground: Ground) -> None:
    """A project beyond the bounds is refused with what to do, and no half of a copy stays."""
    with pytest.raises(SandboxError, match=r"more than 3 paths.*--project.*layers\.files"):
        ground.begin(paths=3)
    assert list((ground.home / "layers").iterdir()) == []


def test_full_disk_leaves_nothing(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that cannot be finished is removed, and the error says so."""

    def full(reading: int, writing: int) -> str:
        raise OSError(28, "No space left on device")

    def not_cloned(reading: int, writing: int) -> bool:
        return False

    monkeypatch.setattr(copying, "_cloned", not_cloned)
    monkeypatch.setattr(copying, "_copied", full)
    with pytest.raises(SandboxError, match="No space left"):
        ground.begin()
    assert list((ground.home / "layers").iterdir()) == []


def test_special_files_are_refused(ground: Ground) -> None:
    """A pipe in the project is left out of the copy; one that the task made cannot be submitted."""
    os.mkfifo(ground.project / "pipe")
    layer = ground.begin()
    assert not ground.submitted(layer).changes
    os.mkfifo(layer.copy_of(PROJECT) / "mine")
    with pytest.raises(SandboxError, match="mine is a fifo"):
        submit(layer)


def test_locked_directories(ground: Ground) -> None:
    """Directories without write permission are copied, submitted and merged with their modes."""
    (ground.project / "sub").chmod(0o555)
    layer = ground.begin()
    copy = layer.copy_of(PROJECT)
    assert stat.S_IMODE((copy / "sub").stat().st_mode) == 0o555
    (copy / "ro").mkdir()
    (copy / "ro" / "x").write_text("x\n")
    (copy / "ro").chmod(0o555)
    assert merge(layer, ground.home, ground.submitted(layer).digest).applied
    assert stat.S_IMODE((ground.project / "ro").stat().st_mode) == 0o555
    Layers(ground.home).discard(TASK)
    assert not (ground.home / "layers" / TASK).exists()


def test_begin_again_is_fresh(ground: Ground) -> None:
    """Beginning the same submission again starts from the project as it is now."""
    layer = ground.begin()
    (layer.copy_of(PROJECT) / "half.txt").write_text("half\n")
    (ground.project / "later.txt").write_text("later\n")
    again = ground.begin()
    assert "half.txt" not in seen(again.copy_of(PROJECT))
    assert "later.txt" in seen(again.copy_of(PROJECT))
    assert Layers(ground.home).find(TASK, 1) == again
    assert Layers(ground.home).find(TASK, 2) is None


def test_sweep(ground: Ground) -> None:
    """A start removes copies that were never finished and those of tasks that nobody knows, and nothing else."""
    layer = ground.begin()
    layers = Layers(ground.home)
    (layers.folder / ".making-x").mkdir()
    Layers(ground.home).begin("gone", 1, ground.project, ground.workspace)
    assert layers.sweep({TASK}) == (".making-x", "gone")
    assert layers.find(TASK, 1) == layer


def test_recovery_leaves_layers_alone(ground: Ground) -> None:
    """What a start finishes of cut acts does not touch layers."""
    layer = ground.begin()
    recover(ground.home)
    assert Layers(ground.home).find(TASK, 1) == layer


def test_paths_as_people_know_them(ground: Ground) -> None:
    """What a task says about its copies reads as if it had worked in the project, and requests the other way."""
    layer = ground.begin()
    copy = layer.copy_of(PROJECT)
    assert layer.told(f"made {copy}/a.txt and {copy}") == "made a.txt and ."
    assert layer.told(f"{layer.copy_of(WORKSPACE)}/r.md") == f"{ground.workspace}/r.md"
    assert layer.asked(f"read {ground.project}/a.txt") == f"read {copy}/a.txt"
