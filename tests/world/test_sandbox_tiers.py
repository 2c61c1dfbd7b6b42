"""Tiers: chosen by proof, skipped with a reason, and fail closed."""

from __future__ import annotations

import asyncio
import os
import shlex
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sandbox_world import Commands, World, require_tier

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Limits, Sandbox, SandboxRequest, TierDiagnosis, TierName, ViewRun
from artoo.world import choose, launcher, process
from artoo.world.bubblewrap import find_bubblewrap
from artoo.world.choose import Candidate, diagnose, open_sandbox
from artoo.world.limits import limited
from artoo.world.readonly import ReadOnlyFirst, landlock, seatbelt, seatbelt_profile
from artoo.world.runner import Over, run_of
from artoo.world.selftest import prove
from artoo.world.unconfined import AskForEverything, ended_for_real


@pytest.fixture
def landlocked(world: World) -> Sandbox:
    require_tier("landlock")
    world.artoo_home.mkdir()
    return ReadOnlyFirst("landlock", landlock, world.artoo_home)


async def test_landlock_reads_and_computes(landlocked: Sandbox, world: World) -> None:
    """A command that only reads needs no confirmation and may use its scratch directory."""
    (world.project / "f").write_text("b\na\n")
    run = await landlocked.look(world.bash("sort f > $TMPDIR/x && cat $TMPDIR/x"))
    assert (run.status, run.stdout.text, run.needs_confirmation) == ("ok", "a\nb\n", False)


@pytest.mark.parametrize("script", ["rm f", "echo x > f", "chmod 000 f", "touch new", "rm f || true", "mv f g"])
async def test_landlock_holds_files(landlocked: Sandbox, world: World, script: str) -> None:
    """A write, a deletion or a mode change is refused, and the run asks to be repeated for real."""
    (world.project / "f").write_text("same")
    run = await landlocked.look(world.bash(script))
    assert run.needs_confirmation
    assert (world.project / "f").read_text() == "same"
    assert os.listdir(world.project) == ["f"]


async def test_landlock_hides_secrets_and_sockets(landlocked: Sandbox, world: World) -> None:
    """Keys cannot be read, sockets not opened, other processes not signalled."""
    (world.home / ".ssh").mkdir()
    (world.home / ".ssh" / "id").write_text("PRIVATE")
    run = await landlocked.look(world.bash(f"cat ~/.ssh/id; kill -0 {os.getpid()} && echo KILL"))
    assert "PRIVATE" not in run.stdout.text and "KILL" not in run.stdout.text
    script = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
    run = await landlocked.look(replace(world.bash(""), argv=("python3", "-c", script)))
    assert "PermissionError" in run.stderr.text


@pytest.mark.skipif(os.geteuid() != 0, reason="a mode keeps a plain user out, outside too")
async def test_no_mode_keeps_root_out_of_its_own_files(world: World) -> None:
    """As outside, in whatever way files are staged here, and with no right beyond those over files."""
    script = (
        "mkdir d; echo in > d/f; chmod 000 d/f; chmod 600 d; cat d/f; echo out > d/g; chown 0:0 d"
        "; grep -E '^Cap(Prm|Eff)' /proc/self/status"
    )
    world.artoo_home.mkdir(mode=0o700)
    tried = 0
    for candidate in choose.candidates(world.artoo_home):
        sandbox = candidate.build(candidate.stage_homes)
        if candidate.tier == "landlock" or (await prove(sandbox, world.home)).problem:
            continue
        tried += 1
        run = await sandbox.look(world.bash(script))
        assert run.stdout.text.split() == ["in", *("CapPrm:", f"{0x1B:016x}", "CapEff:", f"{0x1B:016x}")], candidate
        assert run.stderr.text == "", candidate
    if not tried:
        pytest.skip("no tier that stages changes works here")


async def test_after_a_yes_it_runs_for_real(landlocked: Sandbox, world: World) -> None:
    """An unconfined request takes effect and is still bounded and ended as a whole."""
    commands = Commands(landlocked, world.artoo_home)
    run = await commands.run(replace(world.bash("echo x > made; sleep 600 & echo done"), unconfined=True))
    assert (run.status, run.stdout.text) == ("ok", "done\n")
    run = await commands.run(replace(world.bash("sleep 600", limits=Limits(wall_seconds=0.3)), unconfined=True))
    assert run.status == "timeout"
    assert run.apply().applied and (world.project / "made").exists()


async def test_no_tier_asks_for_everything(world: World) -> None:
    """Without any sandbox nothing runs unasked, and a read-only run is refused."""
    world.artoo_home.mkdir()
    none = AskForEverything(world.artoo_home)
    run = await Commands(none, world.artoo_home).run(world.bash("echo x > made"))
    assert (run.status, run.run.needs_confirmation) == ("refused", True)
    with pytest.raises(SandboxError, match="artoo doctor"):
        await none.look(world.bash("true"))
    run = await Commands(none, world.artoo_home).run(replace(world.bash("echo x > made"), unconfined=True))
    assert run.status == "ok" and run.apply().applied and (world.project / "made").exists()


async def test_seatbelt_by_a_stand_in(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On macOS the command goes through `sandbox-exec -p PROFILE`; a refusal there asks for a rerun."""
    programs = tmp_path / "bin"
    programs.mkdir()
    stand_in = programs / "sandbox-exec"
    kept = shlex.quote(str(tmp_path / "profile"))
    stand_in.write_text(f'#!/bin/sh\n[ "$1" = -p ] || exit 64\nprintf %s "$2" > {kept}\nshift 2\nexec "$@"\n')
    stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (world.home / ".ssh").mkdir()
    world.artoo_home.mkdir()
    sandbox = ReadOnlyFirst("seatbelt", seatbelt, world.artoo_home)
    run = await sandbox.look(world.bash("echo out; echo 'x: Operation not permitted' >&2"))
    assert (run.tier, run.status, run.stdout.text, run.needs_confirmation) == ("seatbelt", "ok", "out\n", True)
    profile = (tmp_path / "profile").read_text()
    assert "(deny file-write*)" in profile and "(deny network*)" in profile
    assert f'(deny file-read* (subpath "{world.home}/.ssh"))' in profile


_STAND_IN = """#!/usr/bin/env python3
import json, os, re, socket, sys
option, profile, *command = sys.argv[1:]
assert option == "-p"
named = lambda rule: re.findall(rule + r' [(]subpath "([^"]+)"[)][)]', profile)
may_write, hidden = named("allow file-write[*]"), filter(os.path.isdir, named("deny file-read[*]"))
bound = [word for path in may_write for word in ("--bind", path, path)]
bound += [word for path in (*hidden, "/sys/fs/cgroup") for word in ("--tmpfs", path)]
isolated = ("--ro-bind", "/", "/", "--dev", "/dev", "--remount-ro", "/dev", "--unshare-pid", "--unshare-net")
listener, here = socket.socketpair()
listener.send(b".")
words = os.memfd_create("words")
os.pwrite(words, json.dumps((["/usr/bin/env", *command], dict(os.environ))).encode(), 0)
for descriptor in (listener.fileno(), here.fileno(), words):
    os.set_inheritable(descriptor, True)
inside = (sys.executable, "-I", "-S", {launcher!r}, "enter", str(here.fileno()), str(words), *may_write, "/dev")
os.execv({bwrap!r}, ["bwrap", *isolated, *bound, "--", *inside])
"""
"""What `sandbox-exec` makes of our profile, as far as bubblewrap can: sockets can be made, and reach nobody."""


async def test_macs_sandbox_proves_itself_by_a_stand_in(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that only Linux has is asked for: neither by the self-test, nor by a command, nor after a yes."""
    require_tier("bubblewrap")
    (programs := tmp_path / "bin").mkdir()
    stand_in = programs / "sandbox-exec"
    stand_in.write_text(_STAND_IN.format(bwrap=str(next(find_bubblewrap())), launcher=launcher.__file__))
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "platform", "darwin")
    for name in ("memfd_create", "pidfd_open"):
        monkeypatch.delattr(os, name)
    sandbox = await open_sandbox(world.artoo_home)
    assert sandbox.tier == "seatbelt", await diagnose(world.artoo_home)
    run = await Commands(sandbox, world.artoo_home).run(world.bash("echo x > made; echo out"))
    assert (run.status, run.stdout.text) == ("ok", "out\n") and not (world.project / "made").exists()
    request = replace(world.bash("sleep 600 & echo x > made; echo out"), unconfined=True)
    ended = await ended_for_real(request)
    assert (ended.exit_code, ended.stdout.text) == (0, "out\n") and (world.project / "made").exists()


@pytest.mark.parametrize("script", ["sleep 600 & echo out", "setsid sleep 9 & sleep 0.1; echo out"])
@pytest.mark.parametrize("late", [0.0, 0.2])
async def test_what_a_command_leaves_does_not_hold_its_end(
    world: World, monkeypatch: pytest.MonkeyPatch, script: str, late: float
) -> None:
    """Also where it has ended before anybody waits for it, and where what it left has gone from its group."""
    start = process._start  # pyright: ignore[reportPrivateUsage]

    async def slowly(*given: Any) -> Any:
        started = await start(*given)
        await asyncio.sleep(late)
        return started

    monkeypatch.setattr(process, "_start", slowly)
    before = len(os.listdir("/proc/self/fd"))
    ended = await ended_for_real(replace(world.bash(script), unconfined=True, limits=Limits(wall_seconds=5.0)))
    assert (ended.exit_code, ended.limit, ended.stdout.text) == (0, None, "out\n")
    assert ended.duration_seconds < 5.0
    until = asyncio.get_running_loop().time() + 10.0
    while len(os.listdir("/proc/self/fd")) > before:  # whoever holds the other ends of its streams
        assert asyncio.get_running_loop().time() < until, "a stream of the command was left open"
        await asyncio.sleep(0.01)


async def test_input_that_nobody_reads_does_not_hold_a_commands_end(world: World) -> None:
    """What has left the group may hold it, and is not ended with the command; the time limit holds all the same."""
    script = "setsid sleep 30 <&0 & sleep 30"
    request = replace(world.bash(script), unconfined=True, stdin=b"x" * 1_000_000, limits=Limits(wall_seconds=0.3))
    ended = await ended_for_real(request)
    assert ended.limit == "timeout" and ended.duration_seconds < 10.0


def test_a_person_may_have_many_processes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel counts a command's processes with all others of the user, its bound leaves room."""
    loads = world.home / "loadavg"
    loads.write_text("0.38 1.89 2.38 1/2345 6789\n")
    monkeypatch.setattr("artoo.world.limits._LOADS", str(loads))
    script = limited(("true",), Limits(processes=64), among_others=True)[2]
    assert "ulimit -p 2409 " in script
    assert "ulimit -p 64 " in limited(("true",), Limits(processes=64))[2]
    loads.unlink()
    script = limited(("true",), Limits(processes=64), among_others=True)[2]
    assert "ulimit -p" not in script and script.endswith('; "$@"; exit $?')


def test_seatbelt_profile_quotes() -> None:
    """Names cannot break out of the profile."""
    profile = seatbelt_profile((Path("/tmp/s"),), (Path('/home/a"b\\c'),))
    assert '(subpath "/home/a\\"b\\\\c")' in profile
    with pytest.raises(SandboxError, match="control characters"):
        seatbelt_profile((Path("/tmp/s"),), (Path("/home/a\nb"),))


async def test_choice_is_remembered(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proved tier is not proved again until the next boot; another boot proves it anew."""
    reports: list[TierDiagnosis] = []
    first = await open_sandbox(world.artoo_home, reports.append)
    if first.tier == "none":
        pytest.skip("no tier works here")
    assert reports[-1].works
    count = len(reports)
    again = await open_sandbox(world.artoo_home, reports.append)
    assert (again.tier, len(reports)) == (first.tier, count)
    monkeypatch.setattr(choose.platform, "release", lambda: "another kernel")
    await open_sandbox(world.artoo_home, reports.append)
    assert len(reports) > count


async def test_a_home_whose_name_is_no_text_has_the_same_tier(world: World, tmp_path: Path) -> None:
    """Bytes that are no UTF-8, in the home's path and so in the mount table of commands, cost no tier."""
    usual = await open_sandbox(world.artoo_home)
    if usual.tier == "none":
        pytest.skip("no tier works here")
    odd = tmp_path / os.fsdecode(b"caf\xe9") / ".artoo"
    assert (await open_sandbox(odd)).tier == usual.tier
    reports: list[TierDiagnosis] = []
    await open_sandbox(odd, reports.append)
    assert not reports


class Leaky:
    """A sandbox that contains nothing."""

    @property
    def tier(self) -> TierName:
        return "bubblewrap"

    async def look(self, request: SandboxRequest) -> ViewRun:
        ended = await ended_for_real(request)
        return run_of(self.tier, Over(ended))


async def test_canary_must_survive(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tier that lets the canary die is not trusted: it is reported, skipped, and at worst everything asks."""
    world.artoo_home.mkdir()
    assert (await prove(Leaky(), world.artoo_home)).problem
    candidate = Candidate("bubblewrap", "leaky", lambda _: Leaky(), (world.artoo_home / "stage",))

    def only_this(_: Path) -> Iterator[Candidate]:
        yield candidate

    monkeypatch.setattr(choose, "candidates", only_this)
    reports: list[TierDiagnosis] = []
    chosen = await open_sandbox(world.artoo_home, reports.append)
    assert chosen.tier == "none"
    assert [(report.tier, report.works) for report in reports] == [("bubblewrap", False)]
    assert reports[0].cause and reports[0].remedy


async def test_doctor_lists_all_tiers(world: World) -> None:
    """Each tier of this system is listed, best first, with a cause and a remedy where it fails."""
    found = await diagnose(world.artoo_home)
    assert found[-1].tier == "none"
    assert all(one.works or (one.cause and one.remedy) for one in found)


async def test_a_way_through_a_parent_or_a_link_is_no_worse(sandbox: Commands, world: World) -> None:
    """ARTOO_HOME with `..` or a link in it gets the same tier as the real path."""
    aside = world.artoo_home.parent / "aside"
    aside.mkdir()
    (aside / "link").symlink_to(world.artoo_home.parent, target_is_directory=True)
    for home in (aside / ".." / "another", aside / "link" / "another"):
        assert (await open_sandbox(home)).tier == sandbox.sandbox.tier


async def test_a_home_that_cannot_be_made_is_named(world: World) -> None:
    """A file in the way, or a read-only place, is a clear error and no crash."""
    world.artoo_home.parent.mkdir(parents=True, exist_ok=True)
    blocked = world.artoo_home.parent / "file"
    blocked.touch()
    with pytest.raises(SandboxError, match="cannot be made"):
        await open_sandbox(blocked / "home")
