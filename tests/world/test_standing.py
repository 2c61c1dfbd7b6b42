"""Sandboxes that stand by for the next command: used when nothing has changed, never stale, never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from sandbox_world import World, first, require_tier
from view_world import bash, out, place_of

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Limits
from artoo.ports.world import Program, View
from artoo.world import entry, reserve
from artoo.world.opening import views_in
from artoo.world.process_tree import descendants

pytestmark = pytest.mark.skipif(
    not (sys.platform.startswith("linux") and entry.supported()), reason="only such entries can be seen to wait"
)

_SOON = 30.0
_FIRST_PROCESS = "cut -d' ' -f22 /proc/1/stat"
"""When the sandbox's first process was started, in the machine's ticks: a number that is the same outside."""


def waiting(below: int | None = None) -> set[int]:
    """The first processes of sandboxes below a process (this one) that wait for their command."""
    found = set[int]()
    for pid in descendants(os.getpid() if below is None else below):
        try:
            is_entry = os.readlink(f"/proc/{pid}/exe").startswith(f"/memfd:{entry.NAME}")
            if is_entry and "unix" in Path(f"/proc/{pid}/wchan").read_text(encoding="utf-8"):
                found.add(pid)
        except OSError:  # it is gone
            continue
    return found


async def one_stands_by() -> str:
    """Until exactly one does: when it was started."""
    until = time.monotonic() + _SOON
    while len(found := await asyncio.to_thread(waiting)) != 1:
        assert time.monotonic() < until, f"{len(found)} sandboxes stand by"
        await asyncio.sleep(0.01)
    return Path(f"/proc/{found.pop()}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()


async def none_stands_by() -> None:
    until = time.monotonic() + _SOON
    while await asyncio.to_thread(waiting):
        assert time.monotonic() < until, "a sandbox still stands by"
        await asyncio.sleep(0.01)


@pytest.fixture
async def on_disk(world: World) -> AsyncGenerator[View]:
    """A view whose commands' layers lie in it, and not in memory beside those of other artoos."""
    require_tier("bubblewrap")
    world.artoo_home.mkdir(mode=0o700)
    sandbox = first("bubblewrap", world.artoo_home).build((world.artoo_home / "stage",))
    view = views_in(sandbox, world.artoo_home)("task-1", world.roots)
    yield view
    await view.close()


def stages(world: World) -> list[Path]:
    """The layers of commands that have not ended."""
    return list(place_of(world).commands.iterdir())


async def test_the_next_command_runs_in_what_stands_by(view: View) -> None:
    """Again and again, and each sees what the one before did, in a process that nothing else has seen."""
    await bash(view, "echo 0 >> log")
    for number in range(1, 4):
        started = await one_stands_by()
        said = await out(view, f"echo {number} >> log; {_FIRST_PROCESS}; cat log; echo /proc/[0-9]*")
        assert said.split() == [started, *map(str, range(number + 1)), "/proc/1", "/proc/2"]  # the entry, and bash


async def test_a_command_that_follows_at_once_does_not_wait_for_it(view: View) -> None:
    """Nothing is made where there is no pause."""
    await bash(view, "true")
    await bash(view, "true")
    assert not waiting()


async def test_it_holds_as_any_other(view: View, world: World) -> None:
    """No descriptor, no setting and no right that a command has not everywhere else."""
    moment = "pid|tgid|sigq|switch| kB"  # SigQ: the signals that wait for any process of this user
    script = f"cd /proc; echo self/fd/* 1/fd/*; cat self/limits self/status | grep -v -i -E '{moment}'"
    script += f"; env; echo x > {world.artoo_home}/x; mkfifo p; ulimit -a"
    first = await bash(view, f"rm -f p; {script}")
    await one_stands_by()
    second = await bash(view, f"rm -f p; {script}")
    assert second.stdout.text == first.stdout.text
    assert second.stderr.text == first.stderr.text


Act = Callable[[World], None]


def _new_secret(world: World) -> None:
    (world.home / ".secret").write_text("closed\n")


def _replaced_secret(world: World) -> None:
    (world.home / ".new").write_text("closed\n")
    (world.home / ".new").rename(world.home / ".old")


def _secret_in_a_new_directory(world: World) -> None:
    (world.home / ".dir").rename(world.home / "was")
    (world.home / ".dir").mkdir()
    (world.home / ".dir" / "secret").write_text("closed\n")


def _new_project(world: World) -> None:
    world.project.rename(world.home / "before")
    world.project.mkdir()
    (world.project / "text").write_text("closed or new\n")


@pytest.mark.parametrize("act", [_new_secret, _replaced_secret, _secret_in_a_new_directory, _new_project])
async def test_what_has_changed_is_as_it_is_now(view: View, world: World, act: Act) -> None:
    """Closed places that were made or replaced meanwhile are closed, and a new project is the project."""
    (world.home / ".old").write_text("old\n")
    (world.home / ".dir").mkdir()
    (world.project / "text").write_text("text\n")
    await bash(view, "true")
    started = await one_stands_by()
    act(world)
    said = await bash(view, f"cat ~/.secret ~/.old ~/.dir/secret; cat text; {_FIRST_PROCESS}")
    *texts, found = said.stdout.text.split("\n")[:-1]
    assert texts == [(world.project / "text").read_text().strip()]
    assert found != started


async def test_what_the_person_writes_meanwhile_is_read(view: View, world: World) -> None:
    """An edit in the project, or another variable, is no reason to make another sandbox: it is there."""
    (world.project / "text").write_text("text\n")
    await bash(view, "cat text")
    started = await one_stands_by()
    (world.project / "text").write_text("other\n")
    (world.project / "more").write_text("more\n")
    script = f"cat text more; echo $WORD; {_FIRST_PROCESS}"
    said = await view.run(Program(("bash", "-c", script), env={"WORD": "w"}))
    assert said.stdout.text.split() == ["other", "more", "w", started]


async def test_what_a_tool_writes_is_seen(view: View) -> None:
    """A file that is written changes the layer: what stood by over it is gone before, and another one comes."""
    await bash(view, "echo 1 > made")
    started = await one_stands_by()
    await view.write(Path("made"), b"2\n")
    assert not waiting()
    again = await one_stands_by()
    assert again != started
    assert await out(view, f"cat made; {_FIRST_PROCESS}") == f"2\n{again}\n"


async def test_forks_have_their_own(view: View) -> None:
    """What stands by over a fork is gone when it is joined or dropped; over what it is joined to, too."""
    await bash(view, "echo 1 > made")
    await one_stands_by()
    one, other = view.fork("one"), view.fork("other")
    await bash(one, "echo 2 > made")
    await bash(other, "echo 3 > made")
    until = time.monotonic() + _SOON
    while len(await asyncio.to_thread(waiting)) != 3:
        assert time.monotonic() < until
        await asyncio.sleep(0.01)
    with pytest.raises(SandboxError, match="forks are open"):
        await bash(view, "true")
    await view.drop("other")
    await view.join(("one",))
    await none_stands_by()
    assert await out(view, "cat made") == "2\n"


@pytest.mark.parametrize(
    "program", [Program(("cat",), stdin=b"fed\n"), Program(("echo", "fed"), limits=Limits(processes=99))]
)
async def test_a_command_that_needs_another_gets_another(view: View, program: Program) -> None:
    """Input, or other limits than the last command's."""
    await bash(view, "true")
    await one_stands_by()
    assert (await view.run(program)).stdout.text == "fed\n"


async def test_it_is_gone_with_the_view(on_disk: View, world: World) -> None:
    """No process and no directory."""
    await bash(on_disk, "true")
    await one_stands_by()
    assert len(stages(world)) == 1
    await on_disk.close()
    assert not waiting() and not stages(world)


async def test_it_does_not_wait_for_ever(on_disk: View, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks nothing for long holds nothing; the next command is run as the first was."""
    monkeypatch.setattr(reserve, "_LONGEST_SECONDS", 0.5)
    await bash(on_disk, "echo 1 > made")
    await one_stands_by()
    await none_stands_by()
    until = time.monotonic() + _SOON
    while stages(world):
        assert time.monotonic() < until
        await asyncio.sleep(0.01)
    assert await out(on_disk, "cat made") == "1\n"


async def test_one_that_was_killed_is_not_used(view: View) -> None:
    """By the person, or for want of memory: the command runs all the same."""
    await bash(view, "echo 1 > made")
    await one_stands_by()
    for pid in waiting():
        os.kill(pid, signal.SIGKILL)
    await none_stands_by()
    await asyncio.sleep(0.1)
    assert await out(view, "cat made") == "1\n"


async def test_who_is_cancelled_while_it_is_made_leaves_nothing(
    on_disk: View, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at any moment of making, taking and running."""
    monkeypatch.setattr(reserve, "_PAUSE_SECONDS", 0.0)
    for milliseconds in range(0, 40, 2):
        await bash(on_disk, "true")
        await asyncio.sleep(milliseconds / 2_000)
        running = asyncio.create_task(bash(on_disk, "echo x >> made"))
        await asyncio.sleep(milliseconds / 1_000)
        running.cancel()
        await asyncio.wait({running})
    await on_disk.close()
    assert not waiting() and not stages(world)


def test_it_ends_with_the_loop(world: World) -> None:
    """A view that nobody closed, because who should have was interrupted, leaves no process and no directory."""
    require_tier("bubblewrap")
    world.artoo_home.mkdir(mode=0o700)

    async def left() -> None:
        sandbox = first("bubblewrap", world.artoo_home).build((world.artoo_home / "stage",))
        await bash(views_in(sandbox, world.artoo_home)("task-1", world.roots), "true")
        await one_stands_by()

    asyncio.run(left())
    assert not waiting() and not stages(world)


async def test_a_closing_that_is_cut_leaves_it_to_who_ends(
    on_disk: View, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is cancelled while it closes a view loses nothing: the next one closes what stands by."""
    monkeypatch.setattr(reserve, "_PAUSE_SECONDS", 0.0)
    await bash(on_disk, "true")
    await asyncio.sleep(0.002)
    closing = asyncio.create_task(on_disk.close())
    await asyncio.sleep(0.001)
    closing.cancel()
    await asyncio.wait({closing})
    await on_disk.close()
    assert not waiting() and not stages(world)


_KILLED = """
import asyncio, sys
from view_victim import a_view
from pathlib import Path
from artoo.ports.world import Program

async def stand_by():
    view = a_view(Path(sys.argv[1]))
    await view.run(Program(("true",)))
    print("ran", flush=True)
    await asyncio.sleep(600)

asyncio.run(stand_by())
"""


def test_it_ends_with_an_artoo_that_is_killed(world: World) -> None:
    """Nobody waits for a command of somebody who is gone."""
    require_tier("bubblewrap")
    victim = subprocess.Popen(
        (sys.executable, "-c", _KILLED, str(world.home)),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(Path(__file__).parent), *sys.path))},
    )
    try:
        assert victim.stdout is not None and victim.stdout.readline() == b"ran\n"
        until = time.monotonic() + _SOON
        while not (found := waiting(victim.pid)):
            assert time.monotonic() < until, "no sandbox stands by"
            time.sleep(0.01)
    finally:
        victim.kill()
        victim.wait()
        assert victim.stdout is not None
        victim.stdout.close()
    until = time.monotonic() + _SOON
    while any(Path(f"/proc/{pid}").exists() for pid in found):
        assert time.monotonic() < until, "it goes on"
        time.sleep(0.01)
