"""What a view keeps of the calls whose changes it holds: it is there if they are, and goes where they go."""

from __future__ import annotations

from pathlib import Path

from sandbox_world import World
from view_world import bash, place_of

from artoo.contracts.changes import Change
from artoo.ports.sandbox import ActNote, Limits
from artoo.ports.world import Program, View, ViewRun
from artoo.world.landing import is_ended, notes_of


async def noted(view: View, script: str, act: str, *, read_only: bool = False) -> ViewRun:
    def note(run: ViewRun) -> ActNote:
        return ActNote(act, "digest", f"{run.status} {run.stdout.text}{len(run.changes)}")

    limits = Limits(wall_seconds=2)
    return await view.run(Program(("bash", "-c", script), limits=limits, read_only=read_only, note=note))


async def test_it_is_asked_before_anything_takes_effect(view: View, world: World) -> None:
    """When the command has ended and its end is known, and neither its layer nor the file is marked or there."""
    place, seen = place_of(world), list[bool]()

    def ended(act: str) -> ActNote:
        homes = list(place.commands.iterdir())
        seen.append(act in notes_of(place) or any(map(is_ended, homes)) or view.files.at(made) is not None)
        return ActNote(act, "digest", "ok")

    def run_ended(run: ViewRun) -> ActNote:
        return ended(f"{run.exit_code} {run.changes[0].path}")

    def write_ended(changes: tuple[Change, ...]) -> ActNote:
        return ended(changes[0].path)

    made = world.project / "made"
    await view.run(Program(("bash", "-c", "echo 1 > made; exit 3"), note=run_ended))
    first = f"3 {made}"
    assert await view.notes() == {first: ActNote(first, "digest", "ok")}
    made = world.project / "written"
    await view.write(Path("written"), b"x", write_ended)
    assert set(await view.notes()) == {first, str(made)}
    assert seen == [False, False]


async def test_nothing_is_kept_where_nothing_changed(any_view: View, world: World) -> None:
    """Commands that only look, were stopped, or whose changes are dropped; and those that nobody gave a note."""
    await noted(any_view, "ls", "looks")
    await noted(any_view, "echo x > a; sleep 9", "stopped")
    await noted(any_view, "echo x > a", "dropped", read_only=True)
    await bash(any_view, "echo x > a")
    assert await any_view.notes() == {}
    await noted(any_view, "echo out; echo x > b", "kept")
    assert await any_view.notes() == {"kept": ActNote("kept", "digest", "ok out\n1")}


async def test_it_goes_where_its_changes_go(view: View, world: World) -> None:
    """Joined with its fork, through forks of forks too; gone with a dropped fork; found by the next process."""
    one, other = view.fork("one"), view.fork("other")
    await noted(one.fork("inner"), "echo x > a", "inner")
    await one.join(["inner"])
    await noted(other, "echo x > b", "other")
    await view.drop("other")
    assert set(await view.notes()) == {"inner"}
    await view.join(["one"])
    await view.close()
    assert set(notes_of(place_of(world))) == {"inner"}
    assert place_of(world).layer_names() == ("task",)
