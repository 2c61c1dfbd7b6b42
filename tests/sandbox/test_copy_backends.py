"""Commands in a plain copy of the project, confined by Landlock: what they can do, and what they cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from living import World, backend_named, gone, plain_world, until

from artoo.ports.workspace import MIB, SandboxLimits
from artoo.sandbox.backends.copying import CopyBackend
from plain_user import act_as_plain_user


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.made(tmp_path, backend_named("landlock"))


async def test_commands_work_in_the_copy(world: World) -> None:
    """What one command makes, edits and deletes the next one sees, and nothing of it is real."""
    (world.project / "old").write_text("real\n")
    (world.project / "gone").write_text("real\n")
    async with world.sandbox() as commands:
        ended = await commands.bash("echo more >> old; rm gone; mkdir tree; ln -s ../old tree/link")
        assert (ended.status, ended.notes) == ("ok", ())
        assert await commands.out("cat tree/link; ls; pwd") == f"real\nmore\nold\ntree\n{world.project}\n"
    assert sorted(os.listdir(world.project)) == ["gone", "old"]
    assert (world.project / "old").read_text() == "real\n"


async def test_real_paths_mean_the_copy(world: World) -> None:
    """A command that names the project by its real path works in the copy, and prints the real path."""
    project = world.project
    async with world.sandbox() as commands:
        assert (
            await commands.out(f"echo x > {project}/made; cd {project} && ls {project}/made") == f"{project}/made\n"
        )
        assert await commands.out(f"printf '%s ' -I{project}/include a:{project}; echo {project}-old") == (
            f"-I{project}/include a:{project} {project}-old\n"
        )
        assert await commands.out(f"echo {world.copy}/a") == f"{project}/a\n"
    assert not (project / "made").exists() and (world.copy / "made").exists()


async def test_tmp_is_the_workspaces_own(world: World) -> None:
    """A file in /tmp is seen by the next command, and is not in the machine's /tmp."""
    name = f"artoo-test-{os.getpid()}"
    async with world.sandbox() as commands:
        assert (
            await commands.out(f"echo x > /tmp/{name}; echo y > $TMPDIR/y; mktemp >/dev/null && echo made")
            == "made\n"
        )
        assert await commands.out(f"cat /tmp/{name} /tmp/y; ls /tmp/{name}") == f"x\ny\n/tmp/{name}\n"
    assert not Path("/tmp", name).exists()


async def test_outside_the_copy_everything_is_refused(world: World, tmp_path: Path) -> None:
    """Writing, modes, times, links and deletions outside the copy fail, and the end says so."""
    outside = tmp_path.resolve() / "outside"
    outside.write_text("same")
    outside.chmod(0o640)
    before = outside.stat()
    scripts = ("echo x > {}", "rm {}", "chmod 777 {}", "touch -d 2001-01-01 {}", "ln {} hard", "mv {} here",
               "ln -s {} soft && chmod 777 soft")  # fmt: skip
    async with world.sandbox() as commands:
        for script in scripts:
            ended = await commands.bash(script.format(outside))
            assert ended.status == ("error" if "hard" in script else "refused"), script
            assert "hard" in script or "approval" in ended.notes[-1]
        assert (await commands.bash("exit 3")).status == "error"
    after = outside.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_nlink) == (before.st_mode, before.st_mtime_ns, 1)
    assert outside.read_text() == "same"


async def test_attributes_outside_the_copy_stay(world: World) -> None:
    """Flags of a file need no more than an open file that can be read."""
    outside = world.home / "outside"
    outside.write_text("x")
    script = (
        "import fcntl, os, struct, sys\n"
        "for request in (0x40086602, 0x401C5820):\n"
        "    try: fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), request, bytes(32))\n"
        "    except OSError as error: print(error.errno)\n"
    )
    async with world.sandbox() as commands:
        ended = await commands.run("python3", "-c", script, str(outside))
    assert ended.stdout.text == "1\n1\n", ended


async def test_secrets_and_artoos_own_files_are_out_of_reach(world: World) -> None:
    """Keys in the hidden part of the home cannot be read, documents can."""
    (world.home / ".ssh").mkdir()
    (world.home / ".ssh" / "id").write_text("PRIVATE")
    (world.artoo_home / "config").write_text("PRIVATE")
    (world.home / "notes").write_text("open\n")
    async with world.sandbox() as commands:
        printed = await commands.out("cat ~/.ssh/id ~/.artoo/config ~/notes; cat /proc/$PPID/environ")
    assert "PRIVATE" not in printed and "open\n" in printed


async def test_modes_owners_and_times_can_be_changed_in_the_copy(world: World) -> None:
    """`chmod +x`, `touch`, `tar`, `cp -a` and git work, also through relative paths and descriptors."""
    script = """
        set -e
        echo 'echo ran' > run.sh && chmod +x run.sh && ./run.sh
        touch -d 2001-02-03 run.sh && stat -c '%y' run.sh | cut -c1-10
        mkdir tree && echo a > tree/a && chmod 600 tree/a && tar cf tree.tar tree && rm -r tree && tar xf tree.tar
        cp -a tree again && stat -c '%a' again/a
        git init -q repo && cd repo && git config user.email a@b && git config user.name a
        echo x > f && git add f && git commit -qm first && git log --format=%s
        python3 -c "import os; os.chmod('f', 0o711, dir_fd=os.open('.', 0)); os.fchmod(os.open('f', 0), 0o755)"
        stat -c '%a' f
    """
    async with world.sandbox() as commands:
        ended = await commands.bash(script)
    assert (ended.stdout.text.split(), ended.stderr.text) == (["ran", "2001-02-03", "600", "first", "755"], "")


async def test_a_path_that_is_exchanged_changes_nothing_outside(world: World, tmp_path: Path) -> None:
    """While a link swings between a file of the copy and one outside, many mode changes go through it."""
    outside = tmp_path.resolve() / "outside"
    outside.write_text("same")
    outside.chmod(0o640)
    script = f"""
import os, threading
open('own', 'w').close()
for name, target in (('in', 'own'), ('out', {str(outside)!r})):
    os.symlink(target, name)
done = threading.Event()
def swing():
    number = 0
    while not done.is_set():
        os.link('in' if number % 2 else 'out', 'next', follow_symlinks=False)
        os.replace('next', 'link')
        os.path.lexists('next') and os.unlink('next')
        number += 1
swinging = threading.Thread(target=swing)
swinging.start()
answers = {{True: 0, False: 0}}
for _ in range(2000):
    try:
        os.chmod('link', 0o777)
        answers[True] += 1
    except OSError:
        answers[False] += 1
done.set()
swinging.join()
print(min(answers.values()) > 0)
"""
    async with world.sandbox() as commands:
        ended = await commands.run("python3", "-c", script)
    assert (ended.stdout.text, ended.stderr.text) == ("True\n", "")
    assert outside.stat().st_mode & 0o777 == 0o640


async def test_signals_reach_processes_of_commands_only(world: World) -> None:
    """A command ends what it or another command started; artoo and the supervisor are out of reach."""
    async with world.sandbox() as commands:
        server = await commands.start("sleep", "600")
        await commands.bash(f"kill -9 {os.getpid()} $PPID 1; kill 0; true")
        assert commands.sandbox.alive
        assert await commands.out("sleep 600 & kill $!; wait $!; echo $?") == "143\n"
        await commands.bash("kill -TERM -1")
        ended = await server.wait(20)
        assert ended is not None and (ended.status, ended.exit_code) == ("killed", 143)


async def test_there_is_no_network(world: World) -> None:
    """No socket can be made, and a host cannot be opened alone: the answer says what to do."""
    async with world.sandbox() as commands:
        for kind in ("AF_INET", "AF_UNIX"):
            ended = await commands.run("python3", "-c", f"import socket; socket.socket(socket.{kind})")
            assert "PermissionError" in ended.stderr.text
        ended = await commands.run("curl", "example.org", hosts=("example.org:80",))
        assert ended.status == "refused" and "without confinement" in ended.notes[0]


async def test_after_an_approval_a_command_has_all_rights(world: World, tmp_path: Path) -> None:
    """It works in the same copy, may write outside, and ends with the sandbox."""
    outside = tmp_path.resolve() / "outside"
    script = f"echo x > {outside}; echo y > made; sleep 600 & echo $!"
    async with world.sandbox() as commands:
        ended = await commands.bash(script, unconfined=True)
        assert ended.status == "ok" and "without confinement" in ended.notes[0]
        assert await commands.out("cat made") == "y\n"
    assert outside.read_text() == "x\n" and not (world.project / "made").exists()
    await until(lambda: gone(int(ended.stdout.text)))


async def test_without_confinement_each_command_is_asked_about(world: World) -> None:
    """The backend `none` runs nothing unasked, and what was approved works in the copy."""
    world.backend = CopyBackend("none")
    async with world.sandbox() as commands:
        ended = await commands.bash("echo x > made")
        assert (ended.status, ended.exit_code) == ("refused", None) and "artoo doctor" in ended.notes[0]
        ended = await commands.bash("echo x > made; pwd", unconfined=True)
        assert (ended.status, ended.stdout.text) == ("ok", f"{world.project}\n")
    assert (world.copy / "made").exists() and not (world.project / "made").exists()


async def test_tasks_do_not_end_each_others_commands(tmp_path: Path) -> None:
    """Their processes have the same ids and share the machine's process table."""
    one, two = (World.made(tmp_path / name, CopyBackend("none")) for name in ("one", "two"))
    sleep = ("bash", "-c", "sleep 600 & sleep 600")
    async with one.sandbox() as here, two.sandbox() as there:
        mine, theirs = await here.start(*sleep, unconfined=True), await there.start(*sleep, unconfined=True)
        assert mine.id == theirs.id and (await mine.stop(0.0)).status == "stopped"
        assert await theirs.wait(0.2) is None


async def test_a_terminal_is_given(world: World) -> None:
    """A program that needs a terminal gets one, waits for input there, and reads it."""
    async with world.sandbox() as commands:
        process = await commands.start("python3", "-qi", pty=True, interactive=True)
        await process.write(b"import os; print(os.isatty(0), 6 * 7, open('/dev/tty').fileno() > 2)\n")
        await until(lambda: b"True 42 True" in process.printed[0].head)
        await process.write(b"exit()\n")
        ended = await process.wait(20)
    assert ended is not None and ended.status == "ok"


async def test_a_process_in_the_background_stays_until_the_end(world: World) -> None:
    """It is there for later commands; closing the sandbox ends it, also when it left its session."""
    async with world.sandbox() as commands:
        script = "setsid -f bash -c 'echo $$ > pid; exec sleep 600'; while [ ! -s pid ]; do sleep 0.01; done"
        assert (await commands.bash(script)).status == "ok"
        assert await commands.out("kill -0 $(cat pid) && echo lives") == "lives\n"
        pid = int((world.copy / "pid").read_text())
        assert not gone(pid)
    assert gone(pid)


async def test_a_memory_limit_ends_the_command_alone(world: World) -> None:
    """The sandbox and its other commands go on."""
    script = "import time; held = bytearray(b'x') * (600 << 20); time.sleep(30)"
    async with world.sandbox(lambda one: replace(one, limits=SandboxLimits(memory_bytes=200 * MIB))) as commands:
        other = await commands.start("sleep", "600")
        ended = await commands.run("python3", "-c", script)
        assert ended.status == "memory_limit"
        assert other.ended is None and await commands.out("echo on") == "on\n"


_VICTIM = """
import asyncio, sys
sys.path[:0] = sys.argv[3:]
from pathlib import Path
from living import World
from artoo.sandbox.backends.copying import CopyBackend
async def main():
    async with World(Path(sys.argv[2]), CopyBackend(sys.argv[1])).sandbox() as commands:
        script = "setsid sleep 600 & echo $! > pid; sleep 600"
        await commands.start("bash", "-c", script, unconfined=sys.argv[1] == "none")
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("name", ["landlock", "none"])
async def test_when_artoo_is_killed_everything_ends(world: World, name: str) -> None:
    """Also what left its session."""
    if name == "landlock":
        backend_named(name)
    here = Path(__file__).parent
    arguments = (name, str(world.home), str(here), str(here.parent), str(here.parents[1] / "src"))
    victim = subprocess.Popen((sys.executable, "-c", _VICTIM, *arguments))  # noqa: ASYNC220 - it is killed below
    try:
        file = world.copy / "pid"
        await until(lambda: file.exists() and bool(file.read_text().strip()))
        pid = int(file.read_text())
        assert not gone(pid)
    finally:
        victim.kill()
        victim.wait()
    await until(lambda: gone(pid))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_it_holds_for_a_plain_user() -> None:
    """The same for a user without root's rights, where user namespaces are forbidden."""
    with plain_world(backend_named("landlock")) as world:

        def act() -> None:
            import asyncio

            sys.executable = "/usr/bin/python3"
            asyncio.run(_as_a_plain_user(world))

        act_as_plain_user(act, user_namespaces=False)
    assert not world.home.exists()


async def _as_a_plain_user(world: World) -> None:
    async with world.sandbox() as commands:
        printed = await commands.out(
            "chmod 700 . && touch -d 2001-02-03 f && git init -q r && sleep 9 & kill $! && id -u"
        )
        assert printed.split() == ["12345"], printed
        assert (await commands.bash("echo x > ~/outside")).status == "refused"
        assert (await commands.bash("unshare -U true")).status == "refused"


_BROKEN = "#include <stdlib.h>\nint main(int n, char **w) { char *p = malloc(4); return p[n + 3]; }\n"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("sanitizer", ["address", "leak"])
async def test_a_sanitizer_runs(tmp_path: Path, name: str, sanitizer: str) -> None:
    """Its shadow memory is terabytes of address space. Leaks are not looked for: that would trace the program."""
    world = World.made(tmp_path, backend_named(name))
    (world.project / "over.c").write_text(_BROKEN)
    (world.project / "right.c").write_text("int main(void) { return 0; }\n")
    script = (
        f"for one in right over; do gcc -g -fsanitize={sanitizer} $one.c -o $one && ./$one; echo ended $?; done"
    )
    async with world.sandbox() as commands:
        printed = await commands.out(script)
    if "cannot find" in printed:
        pytest.skip(f"there is no library for -fsanitize={sanitizer}")
    assert (
        printed.startswith("ended 0") and "failed to" not in printed and "unexpected memory mapping" not in printed
    )
    assert ("heap-buffer-overflow" in printed) == (sanitizer == "address")
