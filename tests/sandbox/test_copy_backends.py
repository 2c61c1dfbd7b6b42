"""Commands in a plain copy of the project, confined by Landlock: what they can do, and what they cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from copy_world import Home, backend_named, gone, opened, plain_home, until

from artoo.ports.workspace import MIB, Command, SandboxLimits
from artoo.sandbox.backends.copying import CopyBackend
from artoo.sandbox.protocols import Backend
from plain_user import act_as_plain_user


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.made(tmp_path)


@pytest.fixture
def landlock() -> Backend:
    return backend_named("landlock")


async def test_commands_work_in_the_copy(landlock: Backend, home: Home) -> None:
    """What one command makes, edits and deletes the next one sees, and nothing of it is real."""
    (home.project / "old").write_text("real\n")
    (home.project / "gone").write_text("real\n")
    async with opened(landlock, home) as commands:
        ended = await commands.run("echo more >> old; rm gone; mkdir tree; ln -s ../old tree/link")
        assert (ended.status, ended.notes) == ("ok", ())
        assert await commands.out("cat tree/link; ls; pwd") == f"real\nmore\nold\ntree\n{home.project}\n"
    assert sorted(os.listdir(home.project)) == ["gone", "old"]
    assert (home.project / "old").read_text() == "real\n"


async def test_real_paths_mean_the_copy(landlock: Backend, home: Home) -> None:
    """A command that names the project by its real path works in the copy, and prints the real path."""
    project = home.project
    async with opened(landlock, home) as commands:
        assert (
            await commands.out(f"echo x > {project}/made; cd {project} && ls {project}/made") == f"{project}/made\n"
        )
        assert await commands.out(f"printf '%s ' -I{project}/include a:{project}; echo {project}-old") == (
            f"-I{project}/include a:{project} {project}-old\n"
        )
        assert await commands.out(f"echo {home.copy}/a") == f"{project}/a\n"
    assert not (project / "made").exists() and (home.copy / "made").exists()


async def test_tmp_is_the_workspaces_own(landlock: Backend, home: Home) -> None:
    """A file in /tmp is seen by the next command, and is not in the machine's /tmp."""
    name = f"artoo-test-{os.getpid()}"
    async with opened(landlock, home) as commands:
        assert (
            await commands.out(f"echo x > /tmp/{name}; echo y > $TMPDIR/y; mktemp >/dev/null && echo made")
            == "made\n"
        )
        assert await commands.out(f"cat /tmp/{name} /tmp/y; ls /tmp/{name}") == f"x\ny\n/tmp/{name}\n"
    assert not Path("/tmp", name).exists()


async def test_outside_the_copy_everything_is_refused(landlock: Backend, home: Home, tmp_path: Path) -> None:
    """Writing, modes, times, links and deletions outside the copy fail, and the end says so."""
    outside = tmp_path.resolve() / "outside"
    outside.write_text("same")
    outside.chmod(0o640)
    before = outside.stat()
    scripts = ("echo x > {}", "rm {}", "chmod 777 {}", "touch -d 2001-01-01 {}", "ln {} hard", "mv {} here",
               "ln -s {} soft && chmod 777 soft")  # fmt: skip
    async with opened(landlock, home) as commands:
        for script in scripts:
            ended = await commands.run(script.format(outside))
            assert ended.status == ("error" if "hard" in script else "refused"), script
            assert "hard" in script or "approval" in ended.notes[-1]
        assert (await commands.run("exit 3")).status == "error"
    after = outside.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_nlink) == (before.st_mode, before.st_mtime_ns, 1)
    assert outside.read_text() == "same"


async def test_attributes_outside_the_copy_stay(landlock: Backend, home: Home) -> None:
    """Flags of a file need no more than an open file that can be read."""
    outside = home.path / "outside"
    outside.write_text("x")
    script = (
        "import fcntl, os, struct, sys\n"
        "for request in (0x40086602, 0x401C5820):\n"
        "    try: fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), request, bytes(32))\n"
        "    except OSError as error: print(error.errno)\n"
    )
    async with opened(landlock, home) as commands:
        ended = await commands.run(Command(("python3", "-c", script, str(outside))))
    assert ended.stdout.text == "1\n1\n", ended


async def test_secrets_and_artoos_own_files_are_out_of_reach(landlock: Backend, home: Home) -> None:
    """Keys in the hidden part of the home cannot be read, documents can."""
    (home.path / ".ssh").mkdir()
    (home.path / ".ssh" / "id").write_text("PRIVATE")
    (home.artoo_home / "config").write_text("PRIVATE")
    (home.path / "notes").write_text("open\n")
    async with opened(landlock, home) as commands:
        printed = await commands.out("cat ~/.ssh/id ~/.artoo/config ~/notes; cat /proc/$PPID/environ")
    assert "PRIVATE" not in printed and "open\n" in printed


async def test_modes_owners_and_times_can_be_changed_in_the_copy(landlock: Backend, home: Home) -> None:
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
    async with opened(landlock, home) as commands:
        ended = await commands.run(script)
    assert (ended.stdout.text.split(), ended.stderr.text) == (["ran", "2001-02-03", "600", "first", "755"], "")


async def test_a_path_that_is_exchanged_changes_nothing_outside(
    landlock: Backend, home: Home, tmp_path: Path
) -> None:
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
    async with opened(landlock, home) as commands:
        ended = await commands.run(Command(("python3", "-c", script)))
    assert (ended.stdout.text, ended.stderr.text) == ("True\n", "")
    assert outside.stat().st_mode & 0o777 == 0o640


async def test_signals_reach_processes_of_commands_only(landlock: Backend, home: Home) -> None:
    """A command ends what it or another command started; artoo and the supervisor are out of reach."""
    async with opened(landlock, home) as commands:
        server = await commands.start("sleep 600")
        await commands.run(f"kill -9 {os.getpid()} $PPID 1; kill 0; true")
        assert commands.sandbox.alive
        assert await commands.out("sleep 600 & kill $!; wait $!; echo $?") == "143\n"
        await commands.run("kill -TERM -1")
        ended = await server.wait(20)
        assert ended is not None and (ended.status, ended.exit_code) == ("killed", 143)


async def test_there_is_no_network(landlock: Backend, home: Home) -> None:
    """No socket can be made, and a host cannot be opened alone: the answer says what to do."""
    async with opened(landlock, home) as commands:
        for kind in ("AF_INET", "AF_UNIX"):
            ended = await commands.run(Command(("python3", "-c", f"import socket; socket.socket(socket.{kind})")))
            assert "PermissionError" in ended.stderr.text
        ended = await commands.run(Command(("curl", "example.org"), hosts=("example.org:80",)))
        assert ended.status == "refused" and "without confinement" in ended.notes[0]


async def test_after_an_approval_a_command_has_all_rights(landlock: Backend, home: Home, tmp_path: Path) -> None:
    """It works in the same copy, may write outside, and ends with the sandbox."""
    outside = tmp_path.resolve() / "outside"
    script = f"echo x > {outside}; echo y > made; sleep 600 & echo $!"
    async with opened(landlock, home) as commands:
        ended = await commands.run(Command(("bash", "-c", script), unconfined=True))
        assert ended.status == "ok" and "without confinement" in ended.notes[0]
        assert await commands.out("cat made") == "y\n"
    assert outside.read_text() == "x\n" and not (home.project / "made").exists()
    await until(lambda: gone(int(ended.stdout.text)))


async def test_without_confinement_each_command_is_asked_about(home: Home) -> None:
    """The backend `none` runs nothing unasked, and what was approved works in the copy."""
    async with opened(CopyBackend("none"), home) as commands:
        ended = await commands.run("echo x > made")
        assert (ended.status, ended.exit_code) == ("refused", None) and "artoo doctor" in ended.notes[0]
        ended = await commands.run(Command(("bash", "-c", "echo x > made; pwd"), unconfined=True))
        assert (ended.status, ended.stdout.text) == ("ok", f"{home.project}\n")
    assert (home.copy / "made").exists() and not (home.project / "made").exists()


async def test_tasks_do_not_end_each_others_commands(tmp_path: Path) -> None:
    """Their processes have the same ids and share the machine's process table."""
    one, two = Home.made(tmp_path / "one"), Home.made(tmp_path / "two")
    sleep = Command(("bash", "-c", "sleep 600 & sleep 600"), unconfined=True)
    async with opened(CopyBackend("none"), one) as here, opened(CopyBackend("none"), two) as there:
        mine, theirs = await here.start(sleep), await there.start(sleep)
        assert mine.id == theirs.id and (await mine.stop(0.0)).status == "stopped"
        assert await theirs.wait(0.2) is None


async def test_a_terminal_is_given(landlock: Backend, home: Home) -> None:
    """A program that needs a terminal gets one, waits for input there, and reads it."""
    async with opened(landlock, home) as commands:
        process = await commands.start(Command(("python3", "-qi"), pty=True, interactive=True))
        await process.write(b"import os; print(os.isatty(0), 6 * 7, open('/dev/tty').fileno() > 2)\n")
        await until(lambda: b"True 42 True" in process.printed[0].head)
        await process.write(b"exit()\n")
        ended = await process.wait(20)
    assert ended is not None and ended.status == "ok"


async def test_a_process_in_the_background_stays_until_the_end(landlock: Backend, home: Home) -> None:
    """It is there for later commands; closing the sandbox ends it, also when it left its session."""
    async with opened(landlock, home) as commands:
        script = "setsid -f bash -c 'echo $$ > pid; exec sleep 600'; while [ ! -s pid ]; do sleep 0.01; done"
        assert (await commands.run(script)).status == "ok"
        assert await commands.out("kill -0 $(cat pid) && echo lives") == "lives\n"
        pid = int((home.copy / "pid").read_text())
        assert not gone(pid)
    assert gone(pid)


async def test_a_memory_limit_ends_the_command_alone(landlock: Backend, home: Home) -> None:
    """The sandbox and its other commands go on."""
    script = "import time; held = bytearray(b'x') * (600 << 20); time.sleep(30)"
    async with opened(landlock, home, SandboxLimits(memory_bytes=200 * MIB)) as commands:
        other = await commands.start("sleep 600")
        ended = await commands.run(Command(("python3", "-c", script)))
        assert ended.status == "memory_limit"
        assert other.ended is None and await commands.out("echo on") == "on\n"


_VICTIM = """
import asyncio, sys
sys.path[:0] = sys.argv[3:]
from pathlib import Path
from copy_world import Home, opened
from artoo.sandbox.backends.copying import CopyBackend
async def main():
    async with opened(CopyBackend(sys.argv[1]), Home(Path(sys.argv[2]))) as commands:
        from artoo.ports.workspace import Command
        script = "setsid sleep 600 & echo $! > pid; sleep 600"
        await commands.start(Command(("bash", "-c", script), unconfined=sys.argv[1] == "none"))
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("name", ["landlock", "none"])
async def test_when_artoo_is_killed_everything_ends(home: Home, name: str) -> None:
    """Also what left its session."""
    if name == "landlock":
        backend_named(name)
    here = Path(__file__).parent
    arguments = (name, str(home.path), str(here), str(here.parent), str(here.parents[1] / "src"))
    victim = subprocess.Popen((sys.executable, "-c", _VICTIM, *arguments))  # noqa: ASYNC220 - it is killed below
    try:
        file = home.copy / "pid"
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
    backend_named("landlock")
    with plain_home() as home:

        def act() -> None:
            import asyncio

            sys.executable = "/usr/bin/python3"
            asyncio.run(_as_a_plain_user(home))

        act_as_plain_user(act, user_namespaces=False)
    assert not home.path.exists()


async def _as_a_plain_user(home: Home) -> None:
    async with opened(CopyBackend("landlock"), home) as commands:
        printed = await commands.out(
            "chmod 700 . && touch -d 2001-02-03 f && git init -q r && sleep 9 & kill $! && id -u"
        )
        assert printed.split() == ["12345"], printed
        assert (await commands.run("echo x > ~/outside")).status == "refused"
        assert (await commands.run("unshare -U true")).status == "refused"


_BROKEN = "#include <stdlib.h>\nint main(int n, char **w) { char *p = malloc(4); return p[n + 3]; }\n"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")
@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("sanitizer", ["address", "leak"])
async def test_a_sanitizer_runs(tmp_path: Path, name: str, sanitizer: str) -> None:
    """Its shadow memory is terabytes of address space. Leaks are not looked for: that would trace the program."""
    home = Home.made(tmp_path)
    (home.project / "over.c").write_text(_BROKEN)
    (home.project / "right.c").write_text("int main(void) { return 0; }\n")
    script = (
        f"for one in right over; do gcc -g -fsanitize={sanitizer} $one.c -o $one && ./$one; echo ended $?; done"
    )
    async with opened(backend_named(name), home) as commands:
        printed = await commands.out(script)
    if "cannot find" in printed:
        pytest.skip(f"there is no library for -fsanitize={sanitizer}")
    assert (
        printed.startswith("ended 0") and "failed to" not in printed and "unexpected memory mapping" not in printed
    )
    assert ("heap-buffer-overflow" in printed) == (sanitizer == "address")
