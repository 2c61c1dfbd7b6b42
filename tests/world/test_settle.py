"""Applying a difference: whole, in parts, over conflicts, after failures; and undo of all of it."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from layers import view_of
from sandbox_snapshots import snapshot
from sandbox_world import World

from artoo.contracts.errors import SandboxError
from artoo.world import prepare, settle, transaction
from artoo.world.base import Base
from artoo.world.carry import OPAQUE
from artoo.world.closing import opened
from artoo.world.difference import Difference, difference_of
from artoo.world.journal import Note, Record
from artoo.world.kept_notes import TaskPlace, notes_of
from artoo.world.pending import SettledRecord
from artoo.world.recover import recover
from artoo.world.settle import Told, apply_difference, told_of
from artoo.world.undo import Keep, prune, undo
from artoo.world.view_place import ViewPlace

Change = Callable[[Path], object]


@pytest.fixture
def world(world: World) -> World:
    """A home with some files."""
    for name, text in {"a.txt": "one\n", "b.txt": "two\n", "src/m.py": "x = 1\n", "src/n.py": "y = 2\n"}.items():
        path = world.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return world


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


def applied(place: ViewPlace, world: World, paths: list[str] | None = None) -> bool:
    """Applies, and says whether that was all."""
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        chosen = None if paths is None else [str(world.project / path) for path in paths]
        return view.apply(found, digest=found.digest, paths=chosen).whole


def contents(world: World) -> dict[str, str]:
    """What stands in the project: text of files, targets of links."""
    found: dict[str, str] = {}
    for directory, _, files in os.walk(world.project):
        for name in files:
            path = Path(directory) / name
            shown = str(path.relative_to(world.project))
            found[shown] = f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
    return found


WANTED = {
    "a.txt": "edited\n",
    "new/deep/f": "f\n",
    "new/run.sh": "#!/bin/sh\n",
    "link": "-> a.txt",
    "lib/m.py": "x = 1\n",
    "lib/n.py": "y = 2\n",
}


def test_a_difference_is_applied_whole_and_the_view_goes(world: World) -> None:
    """Everything is as the task wanted it, modes too, and nothing of the view is left."""
    place = view_of(world, work)
    assert applied(place, world)
    assert contents(world) == WANTED
    assert stat.S_IMODE((world.project / "new/run.sh").stat().st_mode) == 0o755
    assert not place.base.exists()


def test_undo_puts_back_what_was_applied_in_parts(world: World) -> None:
    """Two parts and the rest, then one undo: every byte is as it was."""
    before = snapshot(world.project)
    place = view_of(world, work)
    assert not applied(place, world, ["a.txt"])
    assert contents(world)["a.txt"] == "edited\n" and "b.txt" in contents(world)
    assert not applied(place, world, ["new/deep"])
    assert contents(world)["new/deep/f"] == "f\n" and "new/run.sh" not in contents(world)
    assert applied(place, world)
    assert contents(world) == WANTED
    assert undo(world.artoo_home, "task-1").refused == ()
    assert snapshot(world.project) == before


def test_that_it_took_effect_stays_known_when_nothing_is_kept_for_undo(world: World) -> None:
    """A task that died after it had applied everything resumes to say so, even if room was made meanwhile."""
    place = view_of(world, work)
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        assert view.apply(found, digest=found.digest, note="what it said").whole
    assert told_of(world.artoo_home, "task-1") == "what it said"
    assert prune(world.artoo_home, Keep(total_bytes=-1)) == 1
    assert told_of(world.artoo_home, "task-1") == "what it said"


def test_a_note_that_a_full_disk_cut_hides_no_other(world: World) -> None:
    """Nor does it hide that something took effect: the record of its act was not forgotten then."""
    place = view_of(world, work)
    for part in (["a.txt"], None):
        with opened(place, world.artoo_home) as view:
            found = view.difference()
            chosen = None if part is None else [str(world.project / name) for name in part]
            view.apply(found, digest=found.digest, paths=chosen, note=f"said of {part}")
    home = world.artoo_home / "undo"
    kept = TaskPlace(home, "task-1")
    kept.place.joinpath("pruned").write_bytes(b'{"act": "settling", "ca')
    assert [note.outcome for note in notes_of(home, "task-1")] == ["said of ['a.txt']", "said of None"]
    assert prune(world.artoo_home, Keep(total_bytes=-1)) == 2
    assert [note.outcome for note in notes_of(home, "task-1")] == ["said of ['a.txt']", "said of None"]


@pytest.mark.parametrize(
    "line", ['{"act": "a", "call": "c", "outcome": "o", "later": 1}', '{"act": "a", {"act": "b"}']
)
def test_a_kept_note_that_is_not_cut_is_never_left_out(tmp_path: Path, line: str) -> None:
    """Of another version, or damaged: what took effect would seem not to have."""
    kept = TaskPlace(tmp_path, "task-1")
    kept.place.mkdir()
    kept.place.joinpath("pruned").write_text(f"{line}\n")
    with pytest.raises(SandboxError, match=r"pruned cannot be read"):
        notes_of(tmp_path, "task-1")
    kept.keep_note(Note(act="b", call="c", outcome="o"))
    with pytest.raises(SandboxError, match=r"pruned cannot be read"):
        notes_of(tmp_path, "task-1")


def test_what_was_undone_did_not_take_effect(world: World) -> None:
    """A task that is resumed after the person took it back does not say that it applied something."""
    place = view_of(world, work)
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        view.apply(found, digest=found.digest, note="what it said")
    undo(world.artoo_home, "task-1")
    assert told_of(world.artoo_home, "task-1") is None


def test_what_was_applied_in_part_is_the_persons_own_afterwards(world: World) -> None:
    """Nothing that is written in the view can reach it, and what the person does with it is no conflict."""
    place = view_of(world, work)
    assert not applied(place, world, ["a.txt", "link"])
    upper = place.upper("task", 0) / "project"
    assert not os.path.lexists(upper / "a.txt") and not os.path.lexists(upper / "link")
    (world.project / "a.txt").write_text("the person goes on\n")
    assert difference_of(place, world.artoo_home).conflicts == ()
    assert applied(place, world)
    assert contents(world)["a.txt"] == "the person goes on\n"


def replaced(home: Path) -> None:
    """A directory made anew in place of one with the same names in it, and a new one."""
    shutil.rmtree(home / "project/tree")
    for name in ("tree/x", "tree/sub/new", "tree/sub/also", "fresh/x", "fresh/y"):
        (home / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "project" / name).write_text("new\n")
    (home / "project/a.txt").write_text("edited\n")


@pytest.mark.parametrize(
    "parts",
    [
        ("tree/x",),
        ("tree/sub/new", "tree/x"),
        ("tree",),
        ("fresh/x",),
        ("tree/old", "a.txt"),
        ("fresh", "tree/sub/old"),
    ],
)
def test_what_was_applied_of_an_opaque_directory_stays(world: World, parts: tuple[str, ...]) -> None:
    """The layer's directory hides all that is below it: what is put there by a part is not deleted by the rest."""
    for name in ("tree/old", "tree/sub/old", "tree/x"):
        (world.project / name).parent.mkdir(parents=True, exist_ok=True)
        (world.project / name).write_text("old\n")
    before = contents(world)
    place = view_of(world, replaced)
    for name in ("tree/sub", "tree", "fresh"):
        upper = place.upper("task", 0) / "project" / name
        for whiteout in (child for child in upper.iterdir() if child.is_char_device()):
            whiteout.unlink()
        os.setxattr(upper, OPAQUE, b"y")
    for part in parts:
        already = contents(world)
        assert not applied(place, world, [part])
        assert contents(world) != already
    (world.project / "tree/mine").write_text("mine\n")
    left = {one.path for one in difference_of(place, world.artoo_home).classes}
    assert not {path for path in left for part in parts if path.startswith(str(world.project / part))}
    assert applied(place, world)
    new = dict.fromkeys(("tree/x", "tree/sub/new", "tree/sub/also", "fresh/x", "fresh/y"), "new\n")
    assert {path: text for path, text in contents(world).items() if "/" in path and "src" not in path} == {
        **new,
        "tree/mine": "mine\n",
    }
    (world.project / "tree/mine").unlink()
    assert undo(world.artoo_home, "task-1").refused == ()
    assert contents(world) == before


def test_a_part_brings_what_it_needs_and_no_more(world: World) -> None:
    """New directories above, and all that a directory holds that goes."""
    place = view_of(world, lambda home: (work(home), shutil.rmtree(home / "project" / "lib")))
    assert not applied(place, world, ["src", "new/deep/f"])
    assert set(contents(world)) == {"a.txt", "b.txt", "new/deep/f"}


def sort(home: Path) -> None:
    """Files move: into a new directory, over another one, with their directory."""
    project = home / "project"
    (project / "done" / "deep").mkdir(parents=True)
    (project / "a.txt").rename(project / "done" / "deep" / "a.txt")
    (project / "b.txt").rename(project / "c.txt")
    (project / "src").rename(project / "lib")


@pytest.mark.parametrize(
    ("part", "moved"),
    [("a.txt", {"done/deep/a.txt": "one\n"}), ("b.txt", {"c.txt": "two\n"}), ("src", {"lib/m.py": "x = 1\n"})],
)
def test_what_is_moved_goes_with_where_it_stands_now(world: World, part: str, moved: dict[str, str]) -> None:
    """Half of a move would be a loss; whatever else waits, waits."""
    (world.project / "c.txt").write_text("overwritten\n")
    before = contents(world)
    assert not applied(view_of(world, sort), world, [part])
    now = contents(world)
    assert moved.items() <= now.items()
    assert sorted(now.values()) == sorted(text for text in before.values() if part != "b.txt" or "over" not in text)
    assert undo(world.artoo_home, "task-1").refused == ()
    assert contents(world) == before


def test_what_is_moved_into_a_conflict_stays_where_it_was(world: World) -> None:
    """Files and the directory that held them: the rest is applied, and no byte of the person is lost."""
    place = view_of(world, sort)
    (world.project / "c.txt").write_text("mine\n")
    (world.project / "lib").mkdir()
    (world.project / "lib" / "m.py").write_text("mine too\n")
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        stuck = [str(Path(one.path).relative_to(world.project)) for one in found.conflicts]
        assert stuck == ["b.txt", "c.txt", "lib/m.py", "src", "src/m.py"]
        assert view.apply(found, digest=found.digest).report.applied
    now = contents(world)
    assert (now["b.txt"], now["c.txt"], now["src/m.py"], now["lib/m.py"]) == (
        "two\n",
        "mine\n",
        "x = 1\n",
        "mine too\n",
    )
    assert (now["done/deep/a.txt"], now["lib/n.py"]) == ("one\n", "y = 2\n") and "src/n.py" not in now
    assert undo(world.artoo_home, "task-1").refused == ()


def grow(home: Path) -> None:
    """Files come into directories that were there and that were not; one directory goes, one becomes a file."""
    project = home / "project"
    (project / "src/deep").mkdir()
    for name in ("src/new", "src/deep/new"):
        (project / name).write_text("new\n")
    for name in ("gone", "file"):
        shutil.rmtree(project / name)
    (project / "file").write_text("a file now\n")
    (project / "a.txt").write_text("edited\n")


DEPENDENT: list[tuple[Change, set[str]]] = [
    (lambda p: (p / "gone/a").write_text("mine\n"), {"gone", "gone/a"}),
    (lambda p: (p / "gone/deep/mine").write_text("mine\n"), {"gone", "gone/deep", "gone/deep/mine"}),
    (lambda p: (p / "file/mine").write_text("mine\n"), {"file", "file/mine"}),
    (lambda p: shutil.rmtree(p / "src"), {"src/new", "src/deep", "src/deep/new"}),
    (
        lambda p: (shutil.rmtree(p / "src"), (p / "src").write_text("mine\n")),
        {"src/new", "src/deep", "src/deep/new"},
    ),
    (lambda p: (p / "src/deep").write_text("mine\n"), {"src/deep", "src/deep/new"}),
]


@pytest.mark.parametrize(("person", "stuck"), DEPENDENT)
def test_what_cannot_be_without_what_is_in_conflict_is_in_conflict_too(
    world: World, person: Change, stuck: set[str]
) -> None:
    """The directory that would go, and what would come into one that is not there: the rest can be applied."""
    for name in ("gone/a", "gone/b", "gone/deep/c", "file/a"):
        (world.project / name).parent.mkdir(parents=True, exist_ok=True)
        (world.project / name).write_text(f"{name}\n")
    place = view_of(world, grow)
    person(world.project)
    before = contents(world)
    with opened(place, world.artoo_home) as view:
        found = view.difference()
        assert {str(Path(one.path).relative_to(world.project)) for one in found.conflicts} == stuck
        assert view.apply(found, digest=found.digest).report.applied
    now = contents(world)
    assert now["a.txt"] == "edited\n"
    assert {path: now.get(path) for path, text in before.items() if text == "mine\n"} == {
        path: "mine\n" for path, text in before.items() if text == "mine\n"
    }
    assert undo(world.artoo_home, "task-1").refused == ()
    assert contents(world) == before


def test_the_rest_can_be_applied_after_a_part_was_undone(world: World) -> None:
    """What would come into the directory that undo removed waits for the person, nothing else does."""
    place = view_of(world, work)
    assert not applied(place, world, ["new/run.sh"])
    assert undo(world.artoo_home, "task-1").refused == ()
    assert not applied(place, world)
    assert contents(world) == {path: text for path, text in WANTED.items() if not path.startswith("new")}
    left = difference_of(place, world.artoo_home)
    assert [Path(one.path).name for one in left.conflicts] == ["deep", "f"]


def test_a_part_that_is_not_there_is_refused(world: World) -> None:
    """With its name, and nothing is applied."""
    before = snapshot(world.project)
    with pytest.raises(SandboxError, match=r"nothing\.txt"):
        applied(view_of(world, work), world, ["nothing.txt"])
    assert snapshot(world.project) == before


def test_another_difference_than_was_agreed_to_is_refused(world: World) -> None:
    """The old content is part of what was agreed to, as is every byte of the new one."""
    place = view_of(world, work)
    shown = difference_of(place, world.artoo_home)
    (place.upper("task", 0) / "project" / "a.txt").write_text("something else\n")
    now = difference_of(place, world.artoo_home)
    with pytest.raises(SandboxError, match="look at the difference again"):
        apply_difference(place, world.artoo_home, now, digest=shown.digest)


def test_the_rest_of_a_conflict_can_be_applied(world: World) -> None:
    """The person's version stays, the view keeps the task's, and everything else takes effect."""
    place = view_of(world, work)
    (world.project / "a.txt").write_text("mine\n")
    assert not applied(place, world)
    assert contents(world) == WANTED | {"a.txt": "mine\n"}
    left = difference_of(place, world.artoo_home)
    assert [one.path for one in left.conflicts] == [str(world.project / "a.txt")] and left.effects == ()
    (world.project / "a.txt").write_text("one\n")
    assert applied(place, world)
    assert contents(world)["a.txt"] == "edited\n"


def test_a_failed_apply_changes_nothing_and_can_be_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full in the middle: all is put back, and the view is whole."""
    before = snapshot(world.project)
    place = view_of(world, work)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Record, "mark_done", full)
        with pytest.raises(SandboxError, match="No space"):
            applied(place, world)
    assert snapshot(world.project) == before
    with monkeypatch.context() as patched:
        patched.setattr(transaction, "converge", _once_broken(transaction.converge))
        with pytest.raises(SandboxError):
            applied(place, world)
    assert snapshot(world.project) == before
    assert applied(place, world)
    assert contents(world) == WANTED


def test_a_name_that_cannot_be_kept_is_said_as_any_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a change of history loses is named first; where there is no room for that nothing was changed."""
    before = snapshot(world.project)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(settle, "keeping_refs", full)
    with pytest.raises(SandboxError, match=r"No space left on device.*nothing was changed"):
        applied(view_of(world, work), world)
    assert snapshot(world.project) == before


@pytest.mark.parametrize("lends", [True, False])
def test_a_name_that_stays_in_the_view_is_not_the_persons_file(
    world: World, monkeypatch: pytest.MonkeyPatch, lends: bool
) -> None:
    """Of two names that the task gave one file a part was applied: what is written by the other stays in the view.
    Both at once are one file."""

    def one_file(home: Path) -> None:
        for name in ("x", "y"):
            (home / "project" / name).write_text("made\n")

    def refused(*_: object) -> bool:
        return False

    if not lends:
        monkeypatch.setattr(prepare, "_can_be_lent", refused)
    for task, paths in (("task-1", ["x"]), ("task-2", None)):
        for name in ("x", "y"):
            (world.project / name).unlink(missing_ok=True)
        place = view_of(world, one_file, task)
        inside = place.upper("task", 0) / "project"
        (inside / "y").unlink()
        os.link(inside / "x", inside / "y")
        assert applied(place, world, paths) is (paths is None)
        x = (world.project / "x").stat()
        if paths is None:
            assert (x.st_nlink, x.st_ino) == (2, (world.project / "y").stat().st_ino)
        else:
            (inside / "y").write_text("the task goes on\n")
            assert (world.project / "x").read_text() == "made\n"


def _once_broken(real: Callable[..., None]) -> Callable[..., None]:
    left = [1]

    def broken(*given: object, **more: object) -> None:
        real(*given, **more)
        if left:
            left.pop()
            raise OSError(28, "No space left on device")

    return broken


def test_a_view_that_is_at_work_is_left_alone(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Who settles has it to himself; whoever starts meanwhile says nothing about it."""
    place = view_of(world, work)
    in_use = pytest.raises(SandboxError, match="another process")
    with place.locked(), in_use, opened(place, world.artoo_home, patience=0):
        pass
    with place.locked():
        recover(world.artoo_home)
    assert place.exists and not caplog.records


def test_an_undo_waits_for_an_apply_that_is_not_out_of_its_view_yet(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took effect, and there was no room to note that: undone before it was, what the view still holds would
    seem to wait again, without the files that it had lent."""
    before = snapshot(world.project)
    place = view_of(world, work)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(settle, "note_settled", full)
        with opened(place, world.artoo_home) as view:
            found = view.difference()
            assert view.apply(found, digest=found.digest, told=told(found)).report.applied
        with pytest.raises(SandboxError, match="free space"):
            undo(world.artoo_home, "task-1")
        assert prune(world.artoo_home, Keep(total_bytes=0)) == 0
        assert contents(world) == WANTED
    assert undo(world.artoo_home, "task-1").refused == ()
    assert snapshot(world.project) == before
    assert not place.exists


def test_what_the_person_put_in_place_of_an_applied_directory_keeps_no_view(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part is applied, its view has not heard of it, and the directory is a file now: a start ends that."""

    def change(home: Path) -> None:
        (home / "project" / "a.txt").unlink()
        (home / "project" / "a.txt").mkdir()
        for name in ("in", "rest"):
            (home / "project" / "a.txt" / name).write_text(name)

    place = view_of(world, change)
    with monkeypatch.context() as patched:
        patched.setattr(settle, "_rebase", _full)
        assert not applied(place, world, ["a.txt/in"])
    shutil.rmtree(world.project / "a.txt")
    (world.project / "a.txt").write_text("mine\n")
    assert recover(world.artoo_home).finished == ("task-1 (its view)",)
    with opened(place, world.artoo_home) as view:
        assert view.difference().effects
    assert [Path(one.path).name for one in undo(world.artoo_home, "task-1").refused] == ["a.txt"]
    assert (world.project / "a.txt").read_text() == "mine\n"


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def told(found: Difference) -> Told:
    return Told(settled=SettledRecord(at=1.0, task_id="task-1", what="applied", by="person", digest=found.digest))


def test_what_took_effect_is_said_to_have_although_its_view_cannot_be_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more files may be open, for one: the mark stands, and the next one who opens the view ends it."""
    place = view_of(world, work)
    with monkeypatch.context() as patched:
        patched.setattr(settle, "read_base", _unreadable)
        with opened(place, world.artoo_home) as view:
            found = view.difference()
            done = view.apply(found, digest=found.digest, paths=[str(world.project / "a.txt")])
    assert done.report.applied
    with opened(place, world.artoo_home) as view:
        assert str(world.project / "a.txt") not in {one.path for one in view.difference().changes}


def _unreadable(file: Path) -> dict[str, Base]:
    raise SandboxError(f"{file} cannot be read: Too many open files")
