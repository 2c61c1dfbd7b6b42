"""Running: what a command can reach, and how its run ends."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sandbox_world import Commands, World, asked

from artoo.ports.sandbox import MIB, Limits


async def test_output_and_exit_code(any_overlay: Commands, world: World) -> None:
    """Both streams and the exit code come back as they were."""
    run = await any_overlay.run(world.bash("echo out; echo err >&2; exit 7"))
    assert (run.status, run.exit_code) == ("error", 7)
    assert (run.stdout.text, run.stderr.text) == ("out\n", "err\n")
    assert run.changes == ()


async def test_nothing_happens_before_apply(any_overlay: Commands, world: World) -> None:
    """A deletion inside leaves the file outside, until it is applied."""
    (world.project / "canary").write_text("alive")
    run = await any_overlay.run(world.bash("rm canary; [ ! -e canary ]"))
    assert run.status == "ok"
    assert (world.project / "canary").read_text() == "alive"
    assert asked(run.changes)
    assert run.apply().applied
    assert not (world.project / "canary").exists()


async def test_secrets_and_own_files_are_out_of_reach(any_overlay: Commands, world: World) -> None:
    """Keys and artoo's own home can neither be read nor written, and a write does not seem to work."""
    (world.home / ".ssh").mkdir()
    (world.home / ".ssh" / "id").write_text("PRIVATE")
    (world.home / ".netrc").write_text("PRIVATE")
    world.artoo_home.mkdir(exist_ok=True)
    (world.artoo_home / "audit.jsonl").write_text("PRIVATE")
    script = (
        "cd; cat .ssh/id .netrc .artoo/audit.jsonl; "
        "for p in .ssh/new .netrc .artoo/x; do echo x > $p && echo WROTE; done"
    )
    run = await any_overlay.run(world.bash(script))
    assert "PRIVATE" not in run.stdout.text
    assert "WROTE" not in run.stdout.text
    assert run.changes == ()


async def test_environment_is_cleaned(any_overlay: Commands, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and addresses of services are not passed on; what is known to be harmless is."""
    for name, value in {"OPENAI_API_KEY": "x", "MY_TOKEN": "x", "SSH_AUTH_SOCK": "/x", "LC_PAPER": "seen"}.items():
        monkeypatch.setenv(name, value)
    run = await any_overlay.run(world.bash('echo "$OPENAI_API_KEY$MY_TOKEN$SSH_AUTH_SOCK$LC_PAPER $HOME"'))
    assert run.stdout.text == f"seen {world.home}\n"


async def test_rest_of_the_system_is_read_only(any_overlay: Commands, world: World, tmp_path: Path) -> None:
    """Files outside the roots cannot be changed, not even by root."""
    outside = tmp_path.resolve() / "outside"
    outside.write_text("same")
    script = (
        f"echo x > {outside}; echo x > /etc/artoo-test; mkdir /usr/artoo-test; echo 1 > /proc/sys/vm/drop_caches"
    )
    await any_overlay.run(world.bash(script))
    assert outside.read_text() == "same"
    assert not Path("/etc/artoo-test").exists()
    assert not Path("/usr/artoo-test").exists()


async def test_wall_limit_ends_everything(any_overlay: Commands, world: World) -> None:
    """A run that takes too long is ended with all its children, reads as a timeout, and changes nothing."""
    marker = f"3600.{os.getpid()}{time.time_ns() % 100000}"
    script = f"echo x > made; (setsid sleep {marker} &) ; sleep {marker}"
    run = await any_overlay.run(world.bash(script, limits=Limits(wall_seconds=0.5)))
    assert (run.status, run.exit_code, run.changes) == ("timeout", None, ())
    assert not _running(marker)


async def test_background_processes_end_with_the_command(any_overlay: Commands, world: World) -> None:
    """What a command leaves running, however detached, is dead when the run returns."""
    marker = f"3601.{os.getpid()}{time.time_ns() % 100000}"
    run = await any_overlay.run(world.bash(f"setsid nohup sleep {marker} >/dev/null 2>&1 & disown; echo done"))
    assert (run.status, run.stdout.text) == ("ok", "done\n")
    assert not _running(marker)


async def test_cancelling_ends_the_command(sandbox: Commands, world: World) -> None:
    """A cancelled run leaves no process and no staging directory."""
    marker = f"3602.{os.getpid()}{time.time_ns() % 100000}"
    task = asyncio.ensure_future(sandbox.run(world.bash(f"echo x > made; sleep {marker}")))
    while not _running(marker):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _running(marker)
    assert not (world.project / "made").exists()


async def test_endless_output_is_cut(any_overlay: Commands, world: World) -> None:
    """A flood of output ends the run; the first and the last bytes are kept, all are counted."""
    limits = Limits(output_bytes=2 * MIB, kept_bytes=1000)
    run = await any_overlay.run(world.bash("echo first; yes", limits=limits))
    assert run.status == "output_limit"
    assert run.stdout.text.startswith("first\n")
    assert run.stdout.total_bytes > 2 * MIB
    assert len(run.stdout.head) + len(run.stdout.tail) <= 1000


async def test_fork_bomb_is_ended(any_overlay: Commands, world: World) -> None:
    """A command that forks without end is stopped by its process limit, and nothing of it is left."""
    marker = f"3603.{os.getpid()}{time.time_ns() % 100000}"
    script = f"for i in $(seq 300); do sleep {marker} & done; wait"
    run = await any_overlay.run(world.bash(script, limits=Limits(processes=50, wall_seconds=1.5)))
    assert run.status in ("process_limit", "error", "timeout")
    assert not _running(marker)


async def test_endless_writing_is_ended(any_overlay: Commands, world: World) -> None:
    """Writing without end stops at the disk limit; nothing is applied, and the result does not read as done."""
    limits = Limits(disk_bytes=4 * MIB, wall_seconds=20)
    run = await any_overlay.run(
        world.bash("i=0; while :; do head -c 1M /dev/zero > f$i; i=$((i+1)); done", limits=limits)
    )
    assert run.status == "disk_limit"
    assert run.changes == ()


async def test_tmp_is_private_and_lasts_as_long_as_the_task(any_overlay: Commands, world: World) -> None:
    """A file left in /tmp is not in the system's, and there for the next command."""
    await any_overlay.run(world.bash("echo x > /tmp/artoo-kept"))
    assert not Path("/tmp/artoo-kept").exists()
    assert (await any_overlay.run(world.bash("cat /tmp/artoo-kept"))).stdout.text == "x\n"


async def test_stdin_reaches_the_command(any_overlay: Commands, world: World) -> None:
    """Bytes given as standard input arrive; without any the input is empty."""
    run = await any_overlay.run(replace(world.bash("wc -c"), stdin=b"x" * 200_000))
    assert run.stdout.text.strip() == "200000"
    assert (await any_overlay.run(world.bash("wc -c"))).stdout.text.strip() == "0"


async def test_read_only_run_reports_and_drops(sandbox: Commands, world: World) -> None:
    """A read-only run shows what it would have changed, and so does a look; neither leaves anything to settle."""
    run = await sandbox.run(world.bash("echo x > made", read_only=True))
    assert [change.path for change in run.changes] == [f"{world.project}/made"]
    assert run.difference.empty
    looked = await sandbox.sandbox.look(world.bash("echo x > made"))
    assert (looked.status, looked.changes) == ("ok", run.changes)
    assert not (world.project / "made").exists()


async def test_project_outside_home(any_overlay: Commands, world: World, tmp_path: Path) -> None:
    """A project elsewhere has a view of its own beside the home's."""
    project = tmp_path.resolve() / "elsewhere"
    project.mkdir()
    roots = replace(world.roots, project=project)
    run = await any_overlay.run(replace(world.bash("echo a > here; echo b > ~/there"), cwd=project, roots=roots))
    assert [change.path for change in run.changes] == [f"{project}/here", f"{world.home}/there"]
    assert run.apply().applied
    assert (project / "here").read_text() == "a\n"


async def test_no_network_no_sockets(any_overlay: Commands, world: World) -> None:
    """No TCP, no UDP to the machine, no UNIX socket, no datagram pair; a stream pair works."""
    script = (
        "import socket\n"
        "def trial(n, f):\n"
        "    try: f(); print(n)\n"
        "    except OSError: pass\n"
        "trial('tcp', lambda: socket.create_connection(('127.0.0.1', 22), 1))\n"
        "trial('unix', lambda: socket.socket(socket.AF_UNIX))\n"
        "trial('vsock', lambda: socket.socket(40, socket.SOCK_STREAM))\n"
        "trial('dgram', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))\n"
        "trial('pair', lambda: socket.socketpair())\n"
    )
    run = await any_overlay.run(replace(world.bash(""), argv=("python3", "-c", script)))
    assert run.stdout.text == "pair\n", run.stderr.text


async def test_missing_program_is_an_error(any_overlay: Commands, world: World) -> None:
    """A program that does not exist gives exit code 127, not an exception."""
    run = await any_overlay.run(replace(world.bash(""), argv=("artoo-no-such-program",)))
    assert (run.status, run.exit_code) == ("error", 127)


def _running(marker: str) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in line and b"sleep" in line.split(b"\0")[0]:
                return True
    return False
