"""Settling a change set: whole, in parts, over conflicts, after crashes; and undo of all of it."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from laid_out import World, snapshot, workspace_of

from artoo.contracts.errors import SandboxError
from artoo.workspace import commit
from artoo.workspace.directory import WorkspaceDirectory, WorkspaceInUse, Workspaces
from artoo.workspace.settlement import finish, service
from artoo.workspace.settlement.finish import discard, outcomes, took_effect
from artoo.workspace.settlement.history import SettledRecord, note_settled, settled_records
from artoo.workspace.settlement.parts import named, part_of
from artoo.workspace.settlement.service import Settlement, Subject, opened, recover_settlements

Change = Callable[[Path], object]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A home with some files."""
    return World.at(tmp_path, a_txt="one\n", b_txt="two\n", src__m_py="x = 1\n", src__n_py="y = 2\n")


def work(home: Path) -> None:
    """A bit of everything."""
    project = home / "project"
    (project / "a.txt").write_text("edited\n")
    (project / "b.txt").unlink()
    (project / "new" / "deep").mkdir(parents=True)
    (project / "new" / "deep" / "f").write_text("f\n")
    (project / "new" / "run.sh").write_text("#!/bin/sh\n")
    (project / "new" / "run.sh").chmod(0o755)
    (project / "link").symlink_to("a.txt")
    (project / "src").rename(project / "lib")


WANTED = {
    "a.txt": "edited\n",
    "new/deep/f": "f\n",
    "new/run.sh": "#!/bin/sh\n",
    "link": "-> a.txt",
    "lib/m.py": "x = 1\n",
    "lib/n.py": "y = 2\n",
}


def contents(world: World) -> dict[str, str]:
    """Return what is in the project: text of files, targets of links."""
    found: dict[str, str] = {}
    for directory, _, files in os.walk(world.project):
        for name in files:
            path = Path(directory) / name
            shown = str(path.relative_to(world.project))
            found[shown] = f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
    return found


def held(directory: WorkspaceDirectory, world: World) -> Settlement:
    """Return the settlement of a workspace that no one else holds."""
    return Settlement(directory, world.artoo_home)


def apply(directory: WorkspaceDirectory, world: World, *paths: str) -> bool:
    """Apply, and return True if that was all."""
    with opened(directory, world.artoo_home) as settlement:
        assert settlement is not None
        found = settlement.review()
        return settlement.apply(found, paths or None).state == "applied"


def test_a_change_set_is_applied_whole_and_its_workspace_is_deleted(world: World) -> None:
    """Everything is as the task wanted it, modes too, and nothing of the workspace is left."""
    directory = workspace_of(world, work)
    assert apply(directory, world)
    assert contents(world) == WANTED
    assert stat.S_IMODE((world.project / "new/run.sh").stat().st_mode) == 0o755
    assert not directory.base.exists()


def test_one_undo_restores_what_was_applied_in_parts(world: World) -> None:
    """Two parts and the rest, then one undo: every byte is as it was."""
    before = snapshot(world.project)
    directory = workspace_of(world, work)
    assert not apply(directory, world, "a.txt")
    assert contents(world)["a.txt"] == "edited\n" and "b.txt" in contents(world)
    assert not apply(directory, world, "new/deep")
    assert contents(world)["new/deep/f"] == "f\n" and "new/run.sh" not in contents(world)
    assert apply(directory, world)
    assert contents(world) == WANTED
    assert commit.undo(world.artoo_home, "task-1").refused == ()
    assert snapshot(world.project) == before


def test_a_part_that_was_applied_is_no_change_any_more_and_later_edits_stay(world: World) -> None:
    """The user goes on with an applied file: what is left of the task does not touch it."""
    directory = workspace_of(world, work)
    apply(directory, world, "a.txt")
    (world.project / "a.txt").write_text("edited by the user\n")
    found = held(directory, world).review()
    assert not found.conflicts
    assert str(world.project / "a.txt") not in [effect.shown for effect in found.effects]
    assert apply(directory, world)
    assert contents(world) == {**WANTED, "a.txt": "edited by the user\n"}


def _into_hidden(home: Path) -> None:
    (home / "project/a.txt").rename(home / "project/.envrc")


def _into_started(home: Path) -> None:
    (home / "project/a.txt").rename(home / "project/Makefile")


def _into_program(home: Path) -> None:
    (home / "project/a.txt").rename(home / "project/tool")
    (home / "project/tool").chmod(0o755)


def _below_a_file(home: Path) -> None:
    (home / "project/b.txt").unlink()
    (home / "project/b.txt").mkdir()
    (home / "project/b.txt/inner").write_text("new")


@pytest.mark.parametrize(
    ("change", "chosen", "dragged"),
    [
        (_into_hidden, "a.txt", ".envrc"),
        (_into_started, "a.txt", "Makefile"),
        (_into_program, "a.txt", "tool"),
        (_below_a_file, "b.txt/inner", "b.txt"),
    ],
)
def test_a_part_never_drags_along_what_asks_by_its_own_name(
    world: World, change: Change, chosen: str, dragged: str
) -> None:
    """A file that would run, or the loss of another one: it is refused until both are named."""
    before = snapshot(world.project)
    directory = workspace_of(world, change)
    with pytest.raises(SandboxError, match=f"without .*{dragged}: name that too"):
        apply(directory, world, chosen)
    assert snapshot(world.project) == before
    assert apply(directory, world, chosen, dragged)


@pytest.mark.parametrize(
    ("chosen", "also"),
    [
        pytest.param("new/deep/f", {"new", "new/deep"}, id="the directories above a new file"),
        pytest.param("src", {"src/m.py", "src/n.py", "lib", "lib/m.py", "lib/n.py"}, id="both ends of a move"),
        pytest.param("new", {"new/deep", "new/deep/f", "new/run.sh"}, id="everything in a directory"),
        pytest.param("link", set[str](), id="a link by itself"),
    ],
)
def test_a_part_brings_what_it_needs(world: World, chosen: str, also: set[str]) -> None:
    """Nothing that would be half of a thing is applied."""
    settlement = held(workspace_of(world, work), world)
    paths = part_of(settlement.review(), [str(world.project / chosen)]).paths
    assert {os.path.relpath(path, world.project) for path in paths} == {chosen, *also}


@pytest.mark.parametrize("path", ["", "/", ".", "../..", "b", "nothing.txt"])
def test_a_path_that_is_none_of_the_changes_applies_nothing(world: World, path: str) -> None:
    """A path that stands for more or less than what was shown is no approval of everything."""
    directory = workspace_of(world, lambda home: (home / "project" / "a.txt").write_text("edited\n"))
    before = snapshot(world.home)
    with opened(directory, world.artoo_home) as settlement:
        assert settlement is not None
        found = settlement.review()
        with pytest.raises(SandboxError):
            settlement.apply(found, [path])
    assert snapshot(world.home) == before


def test_no_path_at_all_is_no_approval(world: World) -> None:
    """An empty choice is refused."""
    directory = workspace_of(world, work)
    with pytest.raises(SandboxError, match="no path is chosen"):
        named(directory, ())


def test_a_conflict_stays_and_the_rest_can_be_applied(world: World) -> None:
    """The user's version stays; the rest is applied; the conflict is still pending, and is reported."""
    directory = workspace_of(world, work)
    (world.project / "a.txt").write_text("mine\n")
    with opened(directory, world.artoo_home) as settlement:
        assert settlement is not None
        settled = settlement.apply(settlement.review())
    assert settled.state == "partly"
    assert [one.path for one in settled.conflicts] == [str(world.project / "a.txt")]
    assert contents(world) == {**WANTED, "a.txt": "mine\n"}
    assert directory.exists and held(directory, world).pending is not None


def test_what_the_user_changes_after_the_review_stops_the_apply(world: World) -> None:
    """All or nothing: nothing is applied, everything is pending, the user's file is untouched."""
    directory = workspace_of(world, work)
    with opened(directory, world.artoo_home) as settlement:
        assert settlement is not None
        found = settlement.review()
        (world.project / "b.txt").write_text("changed after the review\n")
        before = snapshot(world.project)
        settled = settlement.apply(found)
    assert settled.state == "pending" and settled.conflicts
    assert snapshot(world.project) == before


class Crash(BaseException):
    """The process dies here."""


def die(*_: object, **__: object) -> None:
    raise Crash


def test_a_process_that_dies_before_the_commit_has_changed_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The changes are pending as before."""
    directory = workspace_of(world, work)
    before = snapshot(world.project)
    monkeypatch.setattr(service.commit, "apply", die)
    with pytest.raises(Crash):
        apply(directory, world)
    monkeypatch.undo()
    recover_settlements(world.artoo_home)
    assert snapshot(world.project) == before
    assert apply(directory, world) and contents(world) == WANTED


@pytest.mark.parametrize("step", ["note_settled", "rebase", "Record.close"])
def test_a_process_that_dies_after_the_commit_is_finished_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A part took effect: it is recorded once, and it is no change any more."""
    directory = workspace_of(world, work)
    owner = commit.Record if step == "Record.close" else finish
    monkeypatch.setattr(owner, step.rpartition(".")[2], die)
    with pytest.raises(Crash), opened(directory, world.artoo_home) as settlement:
        assert settlement is not None
        settlement.apply(settlement.review(), ["a.txt"])
    monkeypatch.undo()
    recover_settlements(world.artoo_home)
    recover_settlements(world.artoo_home)
    assert contents(world)["a.txt"] == "edited\n"
    assert [(one.what, one.paths) for one in settled_records(world.artoo_home)] == [
        ("applied", (str(world.project / "a.txt"),))
    ]
    assert str(world.project / "a.txt") not in {one.shown for one in held(directory, world).review().effects}


def test_a_process_that_dies_before_the_workspace_is_deleted_is_finished_by_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything took effect: the workspace goes at the next start."""
    directory = workspace_of(world, work)
    monkeypatch.setattr(WorkspaceDirectory, "remove", die)
    with pytest.raises(Crash):
        apply(directory, world)
    monkeypatch.undo()
    assert contents(world) == WANTED and directory.exists
    recover_settlements(world.artoo_home)
    assert not directory.base.exists()


def test_a_stale_record_of_an_apply_does_not_touch_the_next_workspace_of_the_task(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died when the workspace was deleted, and the task went on in a new one."""
    directory = workspace_of(world, work)
    monkeypatch.setattr(commit.Record, "close", die)
    with pytest.raises(Crash):
        apply(directory, world)
    monkeypatch.undo()
    again = workspace_of(world, lambda home: (home / "project" / "a.txt").write_text("again\n"))
    recover_settlements(world.artoo_home)
    assert again.exists
    assert apply(again, world) and contents(world) == {**WANTED, "a.txt": "again\n"}


def test_a_discarded_workspace_is_deleted_and_recorded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's files stay as they were. When the process dies in between, it can be discarded again, once."""
    directory = workspace_of(world, work)
    before = snapshot(world.project)
    line = SettledRecord(at=time.time(), task_id="task-1", what="discarded", by="me")
    monkeypatch.setattr(WorkspaceDirectory, "remove", die)
    with pytest.raises(Crash), directory.locked():
        discard(directory, world.artoo_home, line)
    monkeypatch.undo()
    assert directory.exists
    with directory.locked():
        discard(directory, world.artoo_home, line)
    assert not directory.base.exists() and snapshot(world.project) == before
    assert settled_records(world.artoo_home) == (line,)


def test_a_damaged_workspace_can_be_discarded(world: World) -> None:
    directory = workspace_of(world, work)
    line = SettledRecord(at=time.time(), task_id="task-1", what="discarded", by="me")
    (directory.base / "workspace.json").write_text("{")
    discard(directory, world.artoo_home, line)
    assert not directory.base.exists()


def test_a_discard_without_a_history_is_logged(world: World, caplog: pytest.LogCaptureFixture) -> None:
    directory = workspace_of(world, work)
    line = SettledRecord(at=time.time(), task_id="task-1", what="discarded", by="me")
    (world.artoo_home / "workspaces" / "settled.jsonl").mkdir()
    discard(directory, world.artoo_home, line)
    assert not directory.base.exists() and "the history has no room" in caplog.text


def test_a_workspace_that_cannot_be_deleted_is_not_reported_as_discarded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the directory, and a second discard finishes the deletion."""
    directory = workspace_of(world, work)
    with monkeypatch.context() as broken, opened(directory, world.artoo_home, Subject(recorded=True)) as settlement:
        assert settlement is not None
        broken.setattr(WorkspaceDirectory, "remove_rest", refuse)
        with pytest.raises(SandboxError, match=f"not discarded: {re.escape(str(directory.base))}"):
            settlement.discard()
    assert directory.base.exists()
    discard(directory, world.artoo_home, SettledRecord(at=time.time(), task_id="task-1", what="discarded", by="me"))
    assert not directory.base.exists()


def refuse(directory: WorkspaceDirectory) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


def test_the_notes_of_an_apply_tell_the_next_life_of_the_task_what_took_effect(world: World) -> None:
    """A process that died right after its apply is told from a user who applied later; an undo ends both."""
    directory = workspace_of(world, work)
    with opened(directory, world.artoo_home, Subject(moment="end", recorded=False)) as settlement:
        assert settlement is not None
        found = settlement.review()
        settlement.apply(found)
    (told,) = outcomes(world.artoo_home, "task-1", "end")
    assert told.state == "applied" and told.digest == found.digest
    assert took_effect(world.artoo_home, "task-1", found.digest)
    assert not took_effect(world.artoo_home, "task-1", "another")
    assert settled_records(world.artoo_home) == ()
    commit.undo(world.artoo_home, "task-1")
    assert not took_effect(world.artoo_home, "task-1")
    assert outcomes(world.artoo_home, "task-1", "end") == ()


def ordinary(home: Path) -> None:
    """An edit, a new file in a new directory, and things that no live apply takes."""
    project = home / "project"
    (project / "a.txt").write_text("edited\n")
    (project / "page").mkdir()
    (project / "page" / "index.html").write_text("<p>\n")
    (project / "b.txt").unlink()
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (home / ".profile").write_text("evil\n")


def test_a_live_apply_takes_only_what_is_ordinary_and_leaves_the_workspace(world: World) -> None:
    """Edits and new files take effect at once; the rest is settled at the end; one undo covers all of it."""
    before = snapshot(world.home)
    directory = workspace_of(world, ordinary)
    settlement = held(directory, world)
    applied = settlement.apply_live(settlement.review())
    assert {os.path.relpath(path, world.project) for path in applied} == {"a.txt", "page", "page/index.html"}
    assert contents(world)["page/index.html"] == "<p>\n" and "b.txt" in contents(world)
    assert settlement.apply_live(settlement.review()) == ()
    (world.project / "a.txt").write_text("the user's editor\n")
    assert settlement.apply_live(settlement.review()) == ()
    (told,) = outcomes(world.artoo_home, "task-1", "live")
    assert {os.path.relpath(one.path, world.project) for one in told.changes} == {
        "a.txt",
        "page",
        "page/index.html",
    }
    (world.project / "a.txt").write_text("edited\n")
    assert apply(directory, world)
    assert not (world.project / "b.txt").exists()
    assert not commit.undo(world.artoo_home, "task-1").refused
    assert snapshot(world.home) == before


def test_a_workspace_is_settled_by_one_process_at_a_time(world: World) -> None:
    """The lock is held while it is open, and taking it does not bring a settled workspace back."""
    directory = workspace_of(world, work)
    with opened(directory, world.artoo_home) as settlement:
        assert settlement is not None
        with pytest.raises(WorkspaceInUse), opened(directory, world.artoo_home, patience=0.0):
            pass
        settlement.forget()
    with opened(directory, world.artoo_home) as settlement:
        assert settlement is None
    assert not directory.base.exists()
    assert Workspaces(world.artoo_home).remembered() == ()


def test_a_line_of_the_history_that_a_full_disk_cut_hides_no_other(world: World) -> None:
    """Nor does the next line continue it."""
    note_settled(world.artoo_home, SettledRecord(at=1.0, task_id="one", what="applied", by="me"))
    history = world.artoo_home / "workspaces" / "settled.jsonl"
    history.write_bytes(history.read_bytes() + b'{"at": 2.0, "task')
    note_settled(world.artoo_home, SettledRecord(at=3.0, task_id="three", what="applied", by="me"))
    assert [one.task_id for one in settled_records(world.artoo_home)] == ["one", "three"]
