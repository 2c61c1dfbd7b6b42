"""What settling makes of acts that lose something, issued in whole tasks with nobody to ask."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from own_cases import BENIGN, BENIGN_IN_REPOSITORY, HISTORY, HOME, LOSES, OUT_OF_REACH, REPOSITORY, Case
from whole_task import Acted, Person, acted, command, written

from overlay_here import overlay_backend
from plain_user import as_plain_user

sys.path.insert(0, str(Path(__file__).parents[1] / "workspace"))
from laid_out import Entry, snapshot

from artoo.contracts.errors import SandboxError
from artoo.contracts.settling import ApplyMode, ChangeClass
from artoo.runtime.changes.find_pending import find_pending, pendings
from artoo.workspace.commit import undo

TOLD = """git for-each-ref | grep -v refs/artoo/ || true
git symbolic-ref -q HEAD || git rev-parse HEAD
git log --exclude='refs/artoo/*' --all --format=%H; git stash list; git status --short; git fsck --no-dangling"""
"""What a user sees of a repository."""

KEPT_BY_GIT = ("config", "hooks", "info")
"""What undo restores byte for byte below .git. The rest is git's bookkeeping, and `git_says` compares it."""


def _home(place: Path, *scripts: str) -> Person:
    home = place.resolve() / "home"
    (home / "ws").mkdir(parents=True)
    for directory, script in zip((home, home / "ws"), scripts, strict=False):
        subprocess.run(["bash", "-ec", script], cwd=directory, env=os.environ | {"HOME": str(home)}, check=True)
    return Person(home, home / "ws")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """One home for all cases: each of them must leave it as it was."""
    return _opened(_home(tmp_path_factory.mktemp("house"), HOME))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """The same with a repository as its project."""
    return _opened(_home(tmp_path_factory.mktemp("repository"), HOME, REPOSITORY))


def _opened(person: Person) -> Person:
    person.artoo_home.mkdir(mode=0o700)
    asyncio.run(overlay_backend(person.artoo_home))
    return person


@pytest.fixture(autouse=True)
def at_home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The person's own home is that of the case."""
    name = "repository" if "repository" in request.fixturenames else "house"
    person: Person = request.getfixturevalue(name)
    monkeypatch.setenv("HOME", str(person.home))
    monkeypatch.chdir(person.project)
    yield


def untouched(person: Person) -> dict[str, Entry]:
    """Return every path of the home except artoo's own: kind, mode, owner, attributes, content."""
    return snapshot(person.home)


def seen(person: Person) -> dict[str, Entry]:
    """Return the same without git's bookkeeping: undo adds reflog lines and keeps objects."""
    return {path: entry for path, entry in untouched(person).items() if not _is_bookkeeping(path)}


def _is_bookkeeping(path: str) -> bool:
    _, inside, inner = path.partition("/.git/")
    return bool(inside) and inner.split("/")[0] not in KEPT_BY_GIT


def git_says(person: Person) -> str:
    """Return what git itself tells of the project's repository; nothing where there is none."""
    if not (person.project / ".git").exists():
        return ""
    done = subprocess.run(
        ["bash", "-ec", TOLD],
        cwd=person.project,
        env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def _mostly_torture(cases: Sequence[Case]) -> list[ParameterSet]:
    """Return the cases with a mark on two of three, which then run with `make torture` only."""
    marks = ((), pytest.mark.torture, pytest.mark.torture)
    return [pytest.param(case, marks=marks[number % 3]) for number, case in enumerate(cases)]


def classes(done: Acted) -> list[ChangeClass]:
    """The classes of all that the task changed, most dangerous first."""
    return [each.change_class for each in done.result.changes.counts]


@pytest.mark.parametrize("case", _mostly_torture(LOSES), ids=lambda case: case.name)
async def test_what_loses_something_waits(house: Person, case: Case) -> None:
    """Not a byte changes; `apply` in another process makes it real; `undo` puts every byte back."""
    before = untouched(house)
    done = await acted(house, [command(case.command)])
    assert done.calls[0].status == "ok", done.calls
    assert (done.state, classes(done)[0]) == ("pending", case.meant), done.result.changes
    assert untouched(house) == before
    assert (await find_pending(house.config, done.result.task_id).apply()).state == "applied"
    assert untouched(house) != before
    assert undo(house.artoo_home, done.result.task_id).refused == ()
    assert untouched(house) == before


async def test_a_new_time_alone_is_an_edit(house: Person) -> None:
    """`touch` is pending like any edit, and undo restores the time."""
    plan = house.project / "plan.md"
    before = plan.stat().st_mtime_ns
    done = await acted(house, [command("touch -d @86400 plan.md")])
    assert (done.state, classes(done)) == ("pending", [ChangeClass.EDIT]), done.result.changes
    assert plan.stat().st_mtime_ns == before
    assert (await find_pending(house.config, done.result.task_id).apply()).state == "applied"
    assert plan.stat().st_mtime == 86_400
    assert undo(house.artoo_home, done.result.task_id).refused == ()
    assert plan.stat().st_mtime_ns == before


async def test_a_pipe_is_never_created(house: Person) -> None:
    """All of it is refused and nothing changes; the other paths can be applied by name."""
    before = untouched(house)
    done = await acted(house, [command("mkfifo pipe; echo x > plan.md")])
    assert (done.state, classes(done)[0]) == ("pending", ChangeClass.SPECIAL), done.result.changes
    pending = find_pending(house.config, done.result.task_id)
    with pytest.raises(SandboxError, match="pipe is a fifo, which artoo does not create"):
        await pending.apply()
    assert untouched(house) == before
    assert (await pending.apply(["plan.md"])).state == "partly"
    assert (house.project / "plan.md").read_text() == "x\n" and not (house.project / "pipe").exists()
    await find_pending(house.config, done.result.task_id).discard()
    assert undo(house.artoo_home, done.result.task_id).refused == ()
    assert untouched(house) == before


@pytest.mark.parametrize("case", _mostly_torture(HISTORY), ids=lambda case: case.name)
async def test_history_waits_and_undo_brings_it_back(repository: Person, case: Case) -> None:
    """`--apply edits` does not cover it; applied with consent, undo brings the old commits back."""
    whole, before, told = untouched(repository), seen(repository), git_says(repository)
    done = await acted(repository, [command(case.command)], apply=ApplyMode.EDITS)
    assert done.calls[0].status == "ok", done.calls
    assert done.state == "pending" and case.meant in classes(done), done.result.changes
    assert untouched(repository) == whole
    assert (await find_pending(repository.config, done.result.task_id).apply()).state == "applied"
    assert git_says(repository) != told
    assert undo(repository.artoo_home, done.result.task_id).refused == ()
    assert (seen(repository), git_says(repository)) == (before, told)


async def _goes_through(person: Person, case: Case) -> None:
    before = seen(person), git_says(person)
    done = await acted(person, [command(case.command)])
    assert done.calls[0].status == "ok", done.calls
    assert (done.state, classes(done)) == ("applied", [case.meant]), done.result.changes
    assert (seen(person), git_says(person)) != before
    assert undo(person.artoo_home, done.result.task_id).refused == ()
    assert (seen(person), git_says(person)) == before


@pytest.mark.parametrize("case", BENIGN, ids=lambda case: case.name)
async def test_what_loses_nothing_is_applied_unasked(house: Person, case: Case) -> None:
    """Nobody is asked, it is there, and undo takes it back."""
    await _goes_through(house, case)


@pytest.mark.parametrize("case", BENIGN_IN_REPOSITORY, ids=lambda case: case.name)
async def test_git_that_loses_nothing_is_applied_unasked(repository: Person, case: Case) -> None:
    """The same for git's bookkeeping, beside work that was not committed."""
    await _goes_through(repository, case)


@pytest.mark.parametrize("text", OUT_OF_REACH)
async def test_artoos_own_files_are_out_of_reach(house: Person, text: str) -> None:
    """Whatever is tried, nothing of them changes, and nothing of it can be applied."""
    before = {path.name for path in house.artoo_home.iterdir()}
    done = await acted(house, [command(text)])
    assert done.state in ("none", "pending")
    if done.state == "pending":
        assert (await find_pending(house.config, done.result.task_id).apply()).state == "pending"
        await find_pending(house.config, done.result.task_id).discard()
    assert before <= {path.name for path in house.artoo_home.iterdir()}
    assert not (house.artoo_home / "config.yaml").exists()


async def test_what_the_task_made_is_free(house: Person) -> None:
    """Files of the task's own are written again, appended to and removed, by any tool, without a question."""
    before = seen(house)
    steps = [
        written("own.md", "one\n"),
        written("own.md", "two\n"),
        command("echo three >> own.md; rm -f own.md; echo four > own.md"),
    ]
    done = await acted(house, steps)
    assert done.state == "applied"
    assert (house.project / "own.md").read_text() == "four\n"
    assert undo(house.artoo_home, done.result.task_id).refused == ()
    assert seen(house) == before


@pytest.mark.parametrize("path", ["plan.md", "photos/../plan.md", "../Documents/letter.txt"])
async def test_a_file_tool_is_no_way_around(house: Person, path: str) -> None:
    """What `write_file` overwrites waits like any command's; after `discard` nothing is left of it."""
    before = seen(house)
    done = await acted(house, [written(path, "other\n")])
    assert (done.state, done.calls[0].status) == ("pending", "ok"), done.calls
    assert (await find_pending(house.config, done.result.task_id).discard()).state == "discarded"
    assert seen(house) == before
    assert done.result.task_id not in {pending.task_id for pending in pendings(house.config)}


_EVERY_NINTH = [
    f"{test.__name__}[{case.name}]"
    for test, cases in (
        (test_what_loses_something_waits, LOSES),
        (test_history_waits_and_undo_brings_it_back, HISTORY),
        (test_what_loses_nothing_is_applied_unasked, BENIGN),
        (test_git_that_loses_nothing_is_applied_unasked, BENIGN_IN_REPOSITORY),
    )
    for case in cases[::9]
]


def test_some_cases_hold_for_a_plain_user() -> None:
    """Another kernel interface, other rights, no devices."""
    only = (*_EVERY_NINTH, "what_the_task_made_is_free", "file_tool_is_no_way_around")
    as_plain_user(Path(__file__), only=" or ".join(only))


@pytest.mark.torture
def test_all_cases_hold_for_a_plain_user() -> None:
    """All of them."""
    as_plain_user(Path(__file__), only="not plain_user", seconds=3_600)
