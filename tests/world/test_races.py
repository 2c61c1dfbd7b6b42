"""Between a look and a rename somebody else is quicker: nothing of theirs is lost, and nothing is half done."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from layers import view_of
from sandbox_world import World
from view_world import bash, place_of

from artoo.contracts.errors import SandboxError
from artoo.ports.world import View
from artoo.world import began, converge, difference, exchange
from artoo.world.base import Base
from artoo.world.difference import Difference, difference_of
from artoo.world.scan import Effect
from artoo.world.settle import apply_difference
from artoo.world.three_way import Compared
from artoo.world.undo import undo
from artoo.world.view_place import ViewPlace

Act = Callable[[], object]
MINE = "the person's own"


def meddling(monkeypatch: pytest.MonkeyPatch, name: str, meddle: Act, *, turn: int = 1) -> None:
    """`meddle` is done at the last instant before the rename of that kind, the `turn`th time."""
    real = getattr(exchange, name)
    turns = [0]

    def late(*places: exchange.Place) -> None:
        turns[0] += 1
        if turns[0] == turn:
            meddle()
        real(*places)

    monkeypatch.setattr(converge, name, late)


def replaced(path: Path, text: str = MINE) -> None:
    """As editors save."""
    beside = path.with_name(f"{path.name}~")
    beside.write_text(text)
    beside.replace(path)


def rewritten(path: Path) -> None:
    """In place, of the same length, and with the old times."""
    was = path.stat()
    path.write_text("X" * was.st_size, encoding="utf-8")
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def asked(world: World, change: Callable[[Path], object]) -> tuple[ViewPlace, Difference]:
    place = view_of(world, lambda home: change(home / "project"))
    return place, difference_of(place, world.artoo_home)


def settled(world: World, place: ViewPlace, found: Difference) -> None:
    assert apply_difference(place, world.artoo_home, found, digest=found.digest).report.applied


def texts(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def test_a_file_that_appears_at_the_last_instant_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Creating is exclusive; the rest of the act is taken back."""
    place, found = asked(world, lambda p: [(p / name).write_text("task") for name in ("a", "n", "z")])
    meddling(monkeypatch, "put_new", lambda: (world.project / "n").write_text(MINE))
    with pytest.raises(SandboxError, match="put back"):
        settled(world, place, found)
    assert texts(world.project) == {"n": MINE}


@pytest.mark.parametrize("meddle", [replaced, rewritten])
def test_a_version_of_the_last_instant_stays(
    world: World, monkeypatch: pytest.MonkeyPatch, meddle: Callable[[Path], object]
) -> None:
    """What is exchanged out is not what was agreed to be replaced: it is exchanged back."""
    (world.project / "n").write_text("old text of it ..")
    place, found = asked(world, lambda p: [(p / name).write_text("task") for name in ("a", "n", "z")])
    meddling(monkeypatch, "exchange", lambda: meddle(world.project / "n"))
    with pytest.raises(SandboxError, match="put back"):
        settled(world, place, found)
    assert texts(world.project) == {"n": MINE if meddle is replaced else "X" * 17}


@pytest.mark.parametrize("meddle", [replaced, rewritten])
def test_a_version_of_the_last_instant_is_not_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch, meddle: Callable[[Path], object]
) -> None:
    """A deletion takes away what was agreed to, and nothing newer."""
    (world.project / "n").write_text("old text of it ..")
    place, found = asked(world, lambda p: (p / "n").unlink())
    meddling(monkeypatch, "put_new", lambda: meddle(world.project / "n"))
    with pytest.raises(SandboxError, match="put back"):
        settled(world, place, found)
    assert texts(world.project) == {"n": MINE if meddle is replaced else "X" * 17}


def test_two_versions_in_one_instant_both_stay(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest has the name; the one before it lies beside."""
    (world.project / "n").write_text("old")
    place, found = asked(world, lambda p: (p / "n").write_text("task"))
    real = exchange.exchange
    versions = iter(["first", "second"])

    def late(one: exchange.Place, other: exchange.Place) -> None:
        version = next(versions, None)
        if version is not None:
            replaced(world.project / "n", version)
        real(one, other)

    monkeypatch.setattr(converge, "exchange", late)
    with pytest.raises(SandboxError):
        settled(world, place, found)
    kept = texts(world.project)
    assert kept.pop("n") == "second"
    assert list(kept.values()) == ["first"]


def test_a_file_removed_at_the_last_instant_stays_removed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who deletes what the task would replace has the last word."""
    (world.project / "n").write_text("old")
    place, found = asked(world, lambda p: (p / "n").write_text("task"))
    meddling(monkeypatch, "exchange", (world.project / "n").unlink)
    with pytest.raises(SandboxError):
        settled(world, place, found)
    assert texts(world.project) == {}


@pytest.mark.parametrize("name", ["n", "gone"])
def test_undo_is_as_careful(world: World, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """What undo would replace or remove is looked at after it lost its name, too."""
    (world.project / "n").write_text("old")
    place, found = asked(world, lambda p: [(p / one).write_text("task") for one in ("n", "gone")])
    settled(world, place, found)
    kind = "exchange" if name == "n" else "put_new"
    meddling(monkeypatch, kind, lambda: replaced(world.project / name))
    with pytest.raises(SandboxError, match="could not put everything back"):
        undo(world.artoo_home, "task-1")
    assert (world.project / name).read_text() == MINE
    monkeypatch.undo()
    report = undo(world.artoo_home, "task-1")
    assert [one.path for one in report.refused] == [str(world.project / name)]
    assert (world.project / name).read_text() == MINE


def test_undo_goes_by_content(world: World) -> None:
    """A version of the same length and time as the task's is the person's all the same."""
    (world.project / "n").write_text("old")
    place, found = asked(world, lambda p: (p / "n").write_text("task"))
    settled(world, place, found)
    rewritten(world.project / "n")
    assert [one.path for one in undo(world.artoo_home, "task-1").refused] == [str(world.project / "n")]
    assert (world.project / "n").read_text() == "XXXX"


def test_consent_covers_the_old_content(world: World) -> None:
    """A file that the person wrote anew, as long and as old as before, is a conflict, and the old yes is void."""
    (world.project / "n").write_text("AAAA")
    (world.project / "gone").write_text("AAAA")
    place, found = asked(world, lambda p: ((p / "n").write_text("task"), (p / "gone").unlink()))
    for name in ("n", "gone"):
        rewritten(world.project / name)
    again = difference_of(place, world.artoo_home)
    assert sorted(Path(one.path).name for one in again.conflicts) == ["gone", "n"]
    assert again.digest != found.digest
    report = apply_difference(place, world.artoo_home, again, digest=again.digest).report
    assert report.paths == ()
    assert texts(world.project) == {"n": "XXXX", "gone": "XXXX"}


def test_the_old_yes_does_not_cover_a_new_version(world: World) -> None:
    """Nothing looked again between the yes and the act: the act itself finds it."""
    (world.project / "n").write_text("AAAA")
    place, found = asked(world, lambda p: (p / "n").write_text("task"))
    rewritten(world.project / "n")
    with pytest.raises((SandboxError, AssertionError)):
        settled(world, place, found)
    assert (world.project / "n").read_text() == "XXXX"


def test_a_version_that_comes_while_the_difference_is_read_is_not_covered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read of a file is compared with what it was, once; a newer version is found by the act."""
    (world.project / "n").write_text("AAAA")
    compared = difference.compared

    def late(effects: Iterable[Effect], bases: Mapping[str, Base], *more: Any) -> Compared:
        rewritten(world.project / "n")
        return compared(effects, bases, *more)

    monkeypatch.setattr(difference, "compared", late)
    place, found = asked(world, lambda p: (p / "n").write_text("task"))
    with pytest.raises((SandboxError, AssertionError)):
        settled(world, place, found)
    assert (world.project / "n").read_text() == "XXXX"


class Clock:
    """The wall clock is set while a command runs; the other one goes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_ns = 0
        real = time.clock_gettime_ns

        def told(which: int) -> int:
            steady = which in (time.CLOCK_MONOTONIC, getattr(time, "CLOCK_BOOTTIME", -1))
            return real(which) + (0 if steady else self.by_ns)

        monkeypatch.setattr(began.time, "clock_gettime_ns", told)


@pytest.mark.parametrize("step_seconds", [0, -5, 3_600])
async def test_an_edit_while_a_command_runs_is_a_conflict(
    view: View, world: World, monkeypatch: pytest.MonkeyPatch, step_seconds: int
) -> None:
    """Whichever version the command saw, the person's stays: also when the clock is set back or ahead meanwhile."""
    clock = Clock(monkeypatch)
    notes = world.project / "notes.txt"
    notes.write_text("old\n")
    await asyncio.sleep(0.05)  # change times are the clock's ticks
    # The files' clock cannot be set here: what the step does is told the other way round.
    clock.by_ns = -step_seconds * 10**9
    running = threading.Timer(0.4, lambda: (setattr(clock, "by_ns", 0), notes.write_text(MINE)))
    running.start()
    await bash(view, "cat notes.txt; sleep 1.2; echo from the command > notes.txt")
    running.join()
    await view.close()
    found = difference_of(place_of(world), world.artoo_home)
    assert [one.path for one in found.conflicts] == [str(notes)]
    assert notes.read_text() == MINE


async def test_files_of_a_clock_that_went_ahead_are_no_conflict(
    view: View, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody set the clock back an hour ago: what was written before that can be changed all the same."""
    clock = Clock(monkeypatch)
    (world.project / "notes.txt").write_text("old\n")
    clock.by_ns = -3_600 * 10**9
    await bash(view, "echo new > notes.txt")
    await view.close()
    found = difference_of(place_of(world), world.artoo_home)
    assert found.conflicts == ()
    assert apply_difference(place_of(world), world.artoo_home, found, digest=found.digest).whole


def race(world: World, mode: str, rounds: int) -> None:
    """A person's program makes or replaces the file while the act is under way, at random instants."""
    dice = random.Random(4)
    path = world.project / "n"
    for number in range(rounds):
        path.unlink(missing_ok=True)
        if mode == "replace":
            path.write_text(f"old {number}")
        place, found = asked(world, lambda p, text=f"task {number}": (p / "n").write_text(text))
        mine = f"mine {number}"
        written: list[str] = []
        wait = dice.uniform(0, 0.006)

        def person(wait: float = wait, mine: str = mine, written: list[str] = written) -> None:
            time.sleep(wait)
            try:
                if mode == "create":
                    with path.open("x") as file:
                        file.write(mine)
                else:
                    replaced(path, mine)
                written.append(mine)
            except FileExistsError:
                pass

        thread = threading.Thread(target=person)
        thread.start()
        with suppress(SandboxError):
            apply_difference(place, world.artoo_home, found, digest=found.digest)
        thread.join()
        if written:
            assert path.read_text() == mine, (number, path.read_text())
        place.remove()


@pytest.mark.parametrize("mode", ["create", "replace"])
def test_nobody_loses_a_race(world: World, mode: str) -> None:
    """Forty rounds of each: a version that somebody wrote is there afterwards."""
    race(world, mode, 40)


@pytest.mark.torture
@pytest.mark.parametrize("mode", ["create", "replace"])
def test_nobody_loses_many_races(world: World, mode: str) -> None:
    """Fifteen hundred rounds of each."""
    race(world, mode, 1_500)
