"""Commands start in one living sandbox, share what they do, and end when they should."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from living import World, bubblewrap, until

from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import CommandLimits
from artoo.sandbox.backends.bubblewrap_mounts import MountPlan
from artoo.sandbox.limits.cgroup import Group
from artoo.sandbox.protocols import Layer
from artoo.sandbox.supervisor import living
from plain_user import as_plain_user

_HERE = Path(__file__).parent


async def test_a_command_tells_how_it_ended(world: World) -> None:
    """Exit codes, signals, both streams, standard input, variables and the working directory arrive as they are."""
    async with world.sandbox() as commands:
        ended = await commands.bash("echo out; echo err >&2; exit 7")
        assert (ended.status, ended.exit_code, ended.stdout.text, ended.stderr.text) == (
            "error",
            7,
            "out\n",
            "err\n",
        )
        ended = await commands.bash("kill -SEGV $$")
        assert (ended.status, ended.exit_code) == ("killed", 128 + signal.SIGSEGV)
        assert "SIGSEGV" in ended.notes[0]
        assert (await commands.run("cat", stdin=b"\x00given")).stdout.head == b"\x00given"
        assert (await commands.run("cat")).stdout.text == ""
        assert await commands.says("echo $GREETING; pwd", env={"GREETING": "hi"}) == f"hi\n{world.project}\n"
        assert await commands.says("pwd", cwd=world.home) == f"{world.home}\n"
        ended = await commands.bash("exit 0")
        assert (ended.status, ended.exit_code, ended.notes) == ("ok", 0, ())


async def test_a_program_is_found_as_a_shell_finds_it(world: World) -> None:
    """On PATH; scripts without a first line run; what is missing or no program says so, as a shell does."""
    (world.project / "script").write_text("echo no first line: $1\n")
    (world.project / "script").chmod(0o755)
    (world.project / "data").write_text("")
    async with world.sandbox() as commands:
        assert (await commands.run("./script", "it")).stdout.text == "no first line: it\n"
        missing = await commands.run("no-such-program")
        assert (missing.exit_code, missing.stderr.text) == (127, "no-such-program: command not found\n")
        for name in ("./data", "."):
            assert (await commands.run(name)).exit_code == 126
        with pytest.raises(SandboxError, match="/nowhere: No such file"):
            await commands.start("true", cwd=Path("/nowhere"))
        with pytest.raises(SandboxError, match="NUL"):
            await commands.start("echo", "a\0b")
        assert (await commands.run("true")).status == "ok"


async def test_arguments_and_input_may_be_large(world: World) -> None:
    """Words of more than a packet, and more input than a pipe holds, arrive whole; too many are an error."""
    words = ["x" * 100_000] * 5
    async with world.sandbox() as commands:
        assert (await commands.run("bash", "-c", 'echo $# "${#1}"', "bash", *words)).stdout.text == "5 100000\n"
        assert (await commands.run("wc", "-c", stdin=bytes(3_000_000))).stdout.text == "3000000\n"
        assert "too long" in (await commands.run("echo", "x" * 3_000_000)).stderr.text


async def test_a_server_answers_ten_later_calls(world: World) -> None:
    """What one call starts in the background serves the next ones, and the call says that it runs on."""
    (world.project / "page").write_text("served\n")
    fetch = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8123/page').read().decode(), end='')"
    async with world.sandbox() as commands:
        ended = await commands.bash("nohup python3 -m http.server 8123 >log 2>&1 & echo started")
        assert ended.stdout.text == "started\n"
        assert "left running in the background" in ended.notes[0]
        await commands.bash("until curl -s --noproxy '*' 127.0.0.1:8123 >/dev/null; do sleep 0.05; done")
        for _ in range(10):
            assert (await commands.run("python3", "-c", fetch)).stdout.text == "served\n"
        assert (await commands.says("grep -c /page log")).strip() == "10"


async def test_what_is_left_running_can_go_on_printing_and_be_stopped(world: World) -> None:
    """A process in the background keeps its output after its command ended; `stop` ends it, too."""
    async with world.sandbox() as commands:
        process = await commands.start("bash", "-c", "(for i in 1 2 3; do sleep 0.1; echo $i; done; sleep 60) &")
        ended = await process.wait()
        assert ended is not None and ended.exit_code == 0
        await until(lambda: process.printed[0].text == "1\n2\n3\n")
        assert process.read(0, 100) == (b"1\n2\n3\n", 6)
        assert await process.stop() == ended
        assert "sleep 60" not in await commands.says("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")


async def test_a_repl_is_driven_through_a_terminal(world: World) -> None:
    """Python prompts, waits for input and says so, answers, and ends at the end of its input."""
    async with world.sandbox() as commands:
        process = await commands.start("python3", "-i", "-q", pty=True, interactive=True)
        await until(lambda: process.printed[0].text.endswith(">>> "))
        await until(lambda: process.waits_for_input)
        await process.write(b"print(6 * 7)\n")
        await until(lambda: "42\r\n>>> " in process.printed[0].text)
        # The terminal throws away input that was not read when Control-C arrives, so wait until this was read.
        await process.write(b"import time; print('as' + 'leep'); time.sleep(30)\n")
        await until(lambda: "asleep" in process.printed[0].text)
        await until(lambda: not process.waits_for_input)
        await process.write(b"\x03")
        await until(lambda: "KeyboardInterrupt" in process.printed[0].text)
        await process.write(b"import os; print(os.get_terminal_size().columns, os.ttyname(0))\n")
        await until(lambda: "80 /dev/pts/0" in process.printed[0].text)
        await process.write(b"exit(3)\n")
        ended = await process.wait()
        assert ended is not None and ended.exit_code == 3


async def test_a_pipe_stays_open_for_input(world: World) -> None:
    """An interactive command gets what is written, is seen to wait, and ends when the input is closed."""
    async with world.sandbox() as commands:
        process = await commands.start("cat", interactive=True, stdin=b"first\n")
        await until(lambda: process.printed[0].text == "first\n")
        await until(lambda: process.waits_for_input)
        await process.write(b"second\n", end=True)
        ended = await process.wait()
        assert ended is not None and ended.stdout.text == "first\nsecond\n"
        with pytest.raises(SandboxError, match="takes no input"):
            await process.write(b"third\n")


async def test_a_process_that_never_reads_its_input_hangs_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To write more than it takes is a clear error after a while, and other commands run meanwhile."""
    monkeypatch.setattr("artoo.sandbox.supervisor.process._UNREAD_SECONDS", 0.5)
    async with world.sandbox() as commands:
        process = await commands.start("sleep", "60", interactive=True)
        writing = asyncio.ensure_future(process.write(bytes(1_000_000)))
        assert (await commands.run("true")).status == "ok"
        with pytest.raises(SandboxError, match="has not read its input"):
            await writing
        assert (await process.stop()).status == "stopped"


async def test_much_output_is_kept_at_both_ends(world: World) -> None:
    """Of 200 MB the head and the tail are kept and memory stays flat; the command is not stopped by it."""
    async with world.sandbox() as commands:
        before = _memory()
        script = "echo begin; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo end"
        ended = await commands.bash(script, limits=CommandLimits(output_bytes=1 << 20))
        assert (ended.status, ended.stdout.total_bytes) == ("ok", 200_000_000 + len("begin\n\nend\n"))
        assert ended.stdout.head.startswith(b"begin\nxxx") and ended.stdout.tail.endswith(b"xxx\nend\n")
        assert _memory() - before < 32 << 20


def _memory() -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024


async def test_a_process_that_ignores_sigterm_is_killed(world: World) -> None:
    """With its children and what hid in a session of its own; a polite one may clean up first."""
    async with world.sandbox() as commands:
        script = (
            "trap '' TERM; setsid bash -c 'trap \"\" TERM; sleep 61' & (trap '' TERM; sleep 62) & echo up; wait"
        )
        process = await commands.start("bash", "-c", f"{script}; sleep 63")
        await until(lambda: process.printed[0].text == "up\n")
        began = time.monotonic()
        ended = await process.stop(grace_seconds=0.3)
        assert (ended.status, ended.exit_code) == ("stopped", None)
        assert time.monotonic() - began < 5
        assert "sleep 6" not in await commands.says("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        polite = await commands.start(
            "bash", "-c", "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.1; done"
        )
        await until(lambda: polite.printed[0].text == "up\n")
        assert (await polite.stop()).stdout.text == "up\nbye\n"


async def test_a_daemon_that_left_its_session_is_stopped_with_its_command(world: World) -> None:
    """It is known by a variable of its environment, though no process above it is left."""
    async with world.sandbox() as commands:
        process = await commands.start("bash", "-c", "setsid bash -c 'sleep 77 & disown' >/dev/null 2>&1; true")
        ended = await process.wait()
        assert ended is not None and "sleep 77" in ended.notes[0]
        await process.stop()
        assert "sleep 77" not in await commands.says("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")


async def test_the_user_edits_while_a_process_runs(world: World) -> None:
    """After a refresh the next command sees files that were replaced, made or deleted; processes go on."""
    for name in ("replaced", "deleted", "written"):
        (world.project / name).write_text("old")
    look = "cat replaced written; ls deleted made 2>&1 | grep -c cannot"
    async with world.sandbox() as commands:
        server = await commands.start("sleep", "6060")
        await commands.bash("cat replaced deleted written made; ls; echo mine > task-file")
        (world.project / "new").write_text("new")
        (world.project / "new").rename(world.project / "replaced")
        (world.project / "deleted").unlink()
        (world.project / "made").write_text("made")
        (world.project / "written").write_text("longer than before")
        await commands.sandbox.refresh()
        assert await commands.says(look) == "newlonger than before1\n"
        assert await commands.says("cat task-file made") == "mine\nmade"
        assert server.ended is None
    assert (world.upper / "project" / "task-file").read_text() == "mine\n"
    assert not (world.project / "task-file").exists()


async def test_the_root_descriptor_shows_what_commands_see(world: World) -> None:
    """Through it files are read and written, and what is written lands in the upper directory."""
    (world.project / "a").write_text("user's")
    async with world.sandbox() as commands:
        root = commands.sandbox.root
        assert root is not None
        relative = str(world.project)[1:]
        await commands.bash("echo task > b; rm a")
        assert sorted(os.listdir(os.open(relative, os.O_RDONLY, dir_fd=root))) == ["b"]
        descriptor = os.open(f"{relative}/c", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=root)
        os.write(descriptor, b"artoo's")
        os.close(descriptor)
        assert await commands.says("cat c") == "artoo's"
    assert (world.project / "a").read_text() == "user's"


async def test_a_closed_sandbox_leaves_nothing(world: World) -> None:
    """No process, no mount point; its running commands say how they ended, and no further one starts."""
    async with world.sandbox() as commands:
        running = await commands.start("sleep", "6060")
        await commands.bash("setsid sleep 6161 >/dev/null 2>&1 & disown")
        await until(lambda: len(_processes_with("sleep\x006060") + _processes_with("sleep\x006161")) == 2)
        outer = _processes_with("sleep\x006060") + _processes_with("sleep\x006161")
        await commands.sandbox.close()
        assert not any(os.path.exists(f"/proc/{pid}") for pid in outer)
        assert running.ended is not None and running.ended.status == "killed"
        assert not commands.sandbox.alive
        with pytest.raises(SandboxError, match="has ended"):
            await commands.start("true")
        with pytest.raises(SandboxError, match="has ended"):
            await commands.sandbox.refresh()
    assert list(world.task.glob("mounts-*")) == []


def _processes_with(words: str) -> list[int]:
    found: list[int] = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if words in Path(f"/proc/{entry}/cmdline").read_text("utf-8", "replace"):
                    found.append(int(entry))
            except OSError:
                continue
    return found


async def test_a_supervisor_that_dies_is_a_clear_error(world: World) -> None:
    """Killed from outside, it takes all processes along; what ran says so, and the next start fails clearly."""
    async with world.sandbox() as commands:
        running = await commands.start("sleep", "6060")
        await commands.bash("true")
        (supervisor,) = _processes_with(f"writable={world.home}\x00writable=/tmp")[-1:]
        os.kill(supervisor, signal.SIGKILL)
        ended = await running.wait(10)
        assert ended is not None and (ended.status, ended.exit_code) == ("killed", None)
        assert "the sandbox ended" in ended.notes[0]
        assert not commands.sandbox.alive
        with pytest.raises(SandboxError, match="the next command starts a new one"):
            await commands.start("true")
    async with world.sandbox() as commands:
        assert (await commands.run("true")).status == "ok"


_VICTIM = """
import asyncio, sys
from pathlib import Path
from typing import Any
sys.path.insert(0, sys.argv[1])
from living import World
async def main():
    async with World(Path(sys.argv[2])).sandbox() as commands:
        await commands.sandbox.refresh()
        await commands.start("sleep", "7171")
        await commands.bash("setsid sleep 7171 >/dev/null 2>&1 & disown")
        print("up", flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_a_killed_artoo_leaves_no_process(world: World) -> None:
    """After kill -9 neither commands nor the sandbox's own processes are left, and the next sandbox opens."""
    victim = subprocess.Popen(  # noqa: ASYNC220 - the test waits for its first line anyway
        (sys.executable, "-c", _VICTIM, str(_HERE), str(world.home)),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with victim:
        assert victim.stdout is not None and victim.stdout.readline() == b"up\n"
        await until(lambda: len(_processes_with("sleep\x007171")) == 2)
        victim.kill()
    place = str(world.home)
    await until(lambda: not _processes_with("sleep\x007171") and not _processes_with(place), "a process is left")
    async with world.sandbox() as commands:
        assert (await commands.run("true")).status == "ok"


async def test_a_start_that_is_cancelled_leaves_nothing(world: World) -> None:
    """Neither a command nor a sandbox; others go on."""
    for delay in (0.0, 0.003, 0.01):
        opening = asyncio.ensure_future(world.backend.open(world.layout()))
        await asyncio.sleep(delay)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert list(world.task.glob("mounts-*")) == []
    async with world.sandbox() as commands:
        for _ in range(20):
            starting = asyncio.ensure_future(commands.start("sleep", "7272"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
        assert (await commands.run("true")).status == "ok"
        await until(lambda: not _processes_with("sleep\x007272"))


async def test_a_check_runs_over_the_workspace_and_leaves_nothing(world: World) -> None:
    """A throw-away sandbox sees what the task made, also while the task's own sandbox lives."""
    (world.project / "a").write_text("user's")
    over = Layer(world.home, below=(world.upper,))
    async with world.sandbox() as commands:
        await commands.bash("echo task > b; rm a")
        async with world.sandbox(lambda layout: replace(layout, layers=(over,))) as once:
            assert await once.says("ls; cat b; echo check > c; rm b; ls") == "b\ntask\nc\n"
        assert await commands.says("ls") == "b\n"
    assert sorted(os.listdir(world.upper / "project")) == ["a", "b"]


async def test_a_check_shows_the_tasks_tmp_and_keeps_nothing_in_it(world: World) -> None:
    """Files of the task's /tmp are there; what the check writes there is gone with it."""
    over = Layer(world.home, below=(world.upper,))
    async with world.sandbox() as commands:
        await commands.bash("echo task > /tmp/a")
        change = partial(replace, layers=(over,), scratch_is_shared=True)
        async with world.sandbox(change) as once:
            assert await once.says("cat /tmp/a /var/tmp/a; echo check > /tmp/b; rm /tmp/a") == "task\ntask\n"
        assert await commands.says("cat /tmp/a; ls /tmp/b 2>&1 || true") == (
            "task\nls: cannot access '/tmp/b': No such file or directory\n"
        )


@pytest.mark.parametrize("step", ["of", "arguments"])
@pytest.mark.parametrize("left", [".brief", ".brief/inner", "open/.brief"])
async def test_a_sandbox_starts_while_what_it_hides_vanishes(
    world: World, monkeypatch: pytest.MonkeyPatch, left: str, step: str
) -> None:
    """Another program's hidden file or directory may be gone before it is covered. It is no change of the task."""
    planned = getattr(MountPlan, step)

    def then_removed(*arguments: Any) -> Any:
        plan = planned(*arguments)
        shutil.rmtree(world.home / Path(left).parts[0], ignore_errors=True)
        (world.home / ".brief-file").unlink(missing_ok=True)
        return plan

    (world.home / left).mkdir(parents=True)
    (world.home / ".brief-file").touch()
    monkeypatch.setattr(MountPlan, step, then_removed)
    async with world.sandbox() as commands:
        assert await commands.says("echo on") == "on\n"
        await commands.bash("echo x > ~/.other")
        assert {path.name for path in world.upper.rglob("*")} == {".other"}
        assert (world.upper / ".other").read_text() == "x\n"


async def test_no_link_leads_the_mounts_of_a_check_outside(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of the task puts links in the way when everything was looked at and bubblewrap starts."""
    outside = world.home.with_name("outside")
    outside.mkdir()
    secret = world.home / "settings" / "inner" / "secret"
    secret.mkdir(parents=True)
    (world.home / ".leads-there").symlink_to(secret)  # so it is covered
    seen = Path("/tmp") / world.home.relative_to("/tmp").parts[0]  # the test's home lies in /tmp
    in_home, in_tmp = world.upper / "settings", world.task / "tmp" / seen.name

    class Swapping(Group):
        def joining(self, argv: Sequence[str]) -> tuple[str, ...]:
            for place in (in_home, in_tmp):
                if place.exists():
                    place.rename(f"{place}.moved")
                place.symlink_to(f"/../oldroot{outside}")
            return tuple(argv)

    async def swapping(*_: object) -> Group:
        return Swapping(world.task / "no-group")

    over = Layer(world.home, below=(world.upper,))
    async with world.sandbox() as commands:
        await commands.bash("touch ~/settings/new")
        monkeypatch.setattr(living, "open_group", swapping)
        change = partial(replace, layers=(over,), scratch_is_shared=True)
        async with world.sandbox(change) as once:
            assert await once.says("ls ~/settings/inner; ls ~/settings/inner/secret; pwd") == (
                f"secret\n{world.project}\n"
            )
    assert os.listdir(outside) == []


async def test_commands_find_each_others_limits(world: World) -> None:
    """No core files, and a file no larger than allowed; each command has its own."""
    async with world.sandbox() as commands:
        assert await commands.says("ulimit -c; ulimit -f", limits=CommandLimits(file_bytes=4096)) == "0\n4\n"
        ended = await commands.bash("head -c 8192 /dev/zero > large", limits=CommandLimits(file_bytes=4096))
        assert ended.status != "ok"
        assert await commands.says("head -c 8192 /dev/zero > large; wc -c < large") == "8192\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="a plain user always has a user namespace")
async def test_root_can_have_a_user_namespace(world: World) -> None:
    """For containers that forbid root to do without: commands run, see the user's edits, and leave nothing."""
    world.backend = bubblewrap(user_namespace=True)
    async with world.sandbox() as commands:
        await commands.says("ls made 2>&- || id -u")
        (world.project / "made").touch()
        await commands.sandbox.refresh()
        assert await commands.says("ls; echo x > task") == "made\n"
    assert not (world.project / "task").exists() and (world.upper / "project" / "task").exists()


@pytest.mark.timeout(180)
def test_all_of_this_holds_for_a_plain_user() -> None:
    """What depends on rights, as a user without any."""
    only = "tells_how or user_edits or root_descriptor or closed or supervisor or check or daemon or killed_artoo"
    as_plain_user(Path(__file__), only=only)
