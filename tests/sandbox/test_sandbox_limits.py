"""A command that takes too much is ended; the sandbox, and what else runs in it, goes on."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from living import PATIENCE, Commands, World, until

from artoo.ports.workspace import MIB, SandboxLimits
from artoo.sandbox.limits.usage import Held, Member, disk_usage
from plain_user import as_plain_user

_LITTLE = SandboxLimits(memory_bytes=300 * MIB, processes=48, disk_bytes=200 * MIB, paths=5_000)
_PRELUDE = """
import ctypes, fcntl, mmap, os, resource, signal, socket, sys, threading, time
libc, MIB, BLOCK = ctypes.CDLL(None), 1 << 20, bytes(1 << 20)
def fill(where, count):
    for _ in range(count): os.write(where, BLOCK)
    return where
def unlinked(path, count):
    where = os.open(path, os.O_RDWR | os.O_CREAT); os.unlink(path); return fill(where, count)
def many(directory, make):
    for n in range(9_000): make(f'{directory}/n{n}')
def children(count, work=lambda: None):
    for _ in range(count):
        if os.fork() == 0: os.setsid(); work(); time.sleep(60); os._exit(0)
"""
_BOMB = """
made = mmap.mmap(-1, 8)  # shared: a bomb that is not stopped must not end the machine on which it is tested
while int.from_bytes(made[:], 'little') < 150:
    try:
        if os.fork() == 0:
            made[:] = (int.from_bytes(made[:], 'little') + 1).to_bytes(8, 'little')
            {}
    except OSError:
        time.sleep(0.01)
time.sleep(60)
"""
_TOO_MUCH = {
    "a fork bomb": ("process_limit", _BOMB.format("signal.signal(15, signal.SIG_IGN)")),
    "threads": ("process_limit", "for _ in range(120): threading.Thread(target=time.sleep, args=(60,)).start()"),
    "memory of children": ("memory_limit", "children(10, lambda: globals().update(x=bytearray(60 * MIB)))"),
    "memfds": ("memory_limit", "x = [fill(os.memfd_create('x'), 100) for _ in range(50)]"),
    "shared memory": ("memory_limit", "m = mmap.mmap(-1, 900 * MIB); [m.write(BLOCK) for _ in range(900)]"),
    "buffers of sockets": ("memory_limit", "x = [socket.socketpair() for _ in range(450)]"),
    "open files without a name": ("disk_limit", "x = [unlinked(f'x{n}', 50) for n in range(20)]"),
    "a reserved file": (
        "disk_limit",
        "os.posix_fallocate(os.open('/tmp/0', os.O_WRONLY | os.O_CREAT), 0, 300 * MIB)",
    ),
    "a full project": ("disk_limit", "x = [fill(os.open(f'{n}', os.O_RDWR | os.O_CREAT), 50) for n in range(20)]"),
    "many links": ("disk_limit", "many('/tmp', lambda path: os.symlink('x', path))"),
}
"""Ways to take more than the limits, and the status of the command then."""

_CANNOT = {
    "/dev/shm": "fill(os.open('/dev/shm/x', os.O_WRONLY | os.O_CREAT), 900)",
    "inotify": "x = [libc.inotify_init() for _ in range(10_000)]; min(x) < 0 and sys.exit(1)",
    "timers": "kind, timer = (ctypes.c_int * 16)(0, 0, 0, 1), ctypes.c_void_p()\n"
    "x = [libc.timer_create(1, kind, ctypes.byref(timer)) for _ in range(10_000)]; min(x) < 0 and sys.exit(1)",
    "System V memory": "x = [libc.shmget(0, 128 << 10, 0o600) for _ in range(100)]; min(x) < 0 and sys.exit(1)",
}
"""Ways that end before they take much: the kernel refuses them, or the monitor ends the command."""


@pytest.fixture
async def little(world: World) -> AsyncGenerator[Commands]:
    """A sandbox that may use little."""
    async with world.sandbox(lambda layout: replace(layout, limits=_LITTLE)) as commands:
        yield commands


@pytest.mark.parametrize("what", _TOO_MUCH)
async def test_a_command_that_takes_too_much_is_ended(little: Commands, what: str) -> None:
    """With its status and a note, and all that it started; a server goes on, and the next command runs."""
    status, code = _TOO_MUCH[what]
    server = await little.start("sleep", "600")
    ended = await little.run(*_python(code))
    assert (ended.status, ended.exit_code) == (status, None), (ended.notes, ended.stderr.text)
    assert any("allowed" in note for note in ended.notes)
    assert server.ended is None
    assert await little.says("rm -rf /tmp/n* /tmp/?; find . -mindepth 1 -delete; echo on") == "on\n"
    async with asyncio.timeout(PATIENCE):  # killed processes die when they get a processor
        while "time.sleep" in await little.says("cat /proc/[0-9]*/cmdline | tr '\\0' ' '"):
            continue
    assert (await server.stop()).status == "stopped"


_HIDING = {
    "sessions": "os.setsid()",
    "programs without variables": "os.setsid(); os.execve('/bin/sleep', ['sleep', '60'], {})",
}


@pytest.mark.parametrize("what", _HIDING)
async def test_a_fork_bomb_that_hides_is_ended(little: Commands, what: str) -> None:
    """When it has grown, perhaps with the whole sandbox: no other system call reaches processes without a group."""
    ended = await little.run(*_python(_BOMB.format(_HIDING[what])))
    assert ended.status == "process_limit", ended


@pytest.mark.parametrize("what", _CANNOT)
async def test_no_place_is_without_a_bound(little: Commands, what: str) -> None:
    """What lies outside the directories of the workspace is small or cannot be written."""
    ended = await little.run(*_python(_CANNOT[what]))
    assert ended.status in ("error", "memory_limit"), ended
    assert await little.says("echo on") == "on\n"


async def test_a_full_workspace_can_be_tidied_up(little: Commands) -> None:
    """What an ended command left counts, and the next command can remove it."""
    ended = await little.run(*_python(_TOO_MUCH["a full project"][1]))
    assert ended.status == "disk_limit"
    assert await little.says("sleep 1; rm ?*; sleep 0.5; ls | wc -l") == "0\n"
    ended = await little.run(*_python("fill(os.open('x', os.O_RDWR | os.O_CREAT), 50); time.sleep(1); sys.exit()"))
    assert ended.status == "ok"


async def test_what_a_command_filled_before_it_ended_counts(little: Commands) -> None:
    """However fast it was. The next one may tidy up, and one that adds to it is ended."""
    fill = "[os.posix_fallocate(os.open(f'{place}/{{n}}', 66), 0, 150 * MIB) for n in range(3)]"
    ended = await little.run(*_python(f"{fill.format(place='/tmp')}; sys.exit()"))
    assert ended.status == "disk_limit" and "allowed" in ended.notes[0], ended
    assert (await little.run("true")).status == "ok"
    assert (await little.run(*_python(f"{fill.format(place='.')}; sys.exit()"))).status == "disk_limit"
    assert await little.says("rm /tmp/?; echo on") == "on\n"


async def test_pages_that_a_fork_shares_count_once(little: Commands) -> None:
    """A server of 120 MiB with ten workers that share its memory has not used 1,200."""
    server = await little.start(*_python("x = bytearray(120 * MIB); children(10)"))
    assert await server.wait(2.0) is None
    await server.stop()


async def test_an_idle_sandbox_costs_nothing(world: World) -> None:
    """While nothing runs in it, nothing is read; a process that sleeps costs next to nothing."""
    async with world.sandbox() as commands:
        for script, most in (("true", 0.01), ("sleep 60 &", 0.1)):
            await commands.bash(script)
            await asyncio.sleep(1.5)
            before = time.process_time()
            await asyncio.sleep(2.0)
            assert time.process_time() - before < most * 2.0


def test_all_names_of_a_whiteout_count_once(tmp_path: Path) -> None:
    """A command that removes a thousand files makes no thousand paths."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a whiteout outside an overlay")
    os.mknod(tmp_path / "0", 0o20000, 0)
    for number in range(1, 100):
        os.link(tmp_path / "0", tmp_path / str(number))
    assert disk_usage([tmp_path], 1 << 40, 1 << 20)[1] == 1


def test_inherited_inotify_instances_count_once() -> None:
    """A server with many children has the instances of the server."""
    held = Held(watchers={1: 3, 2: 3, 3: 4})
    assert held.inotify_instances([Member(pid, parent, 1, 1, 1) for pid, parent in ((1, 0), (2, 1), (3, 1))]) == 4


async def test_a_background_process_is_ended_too(little: Commands) -> None:
    """A process that its command left behind is held to the limits."""
    words = f"{sys.executable} -I -S -c 'import time; time.sleep(0.5); x = bytearray(900 << 20); time.sleep(60)'"
    assert (await little.bash(f"{words} & sleep 0.1")).status == "ok"
    await until(lambda: "x = bytearray" not in _command_lines())


def _command_lines() -> str:
    found: list[bytes] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.append((entry / "cmdline").read_bytes())
            except OSError:
                continue
    return b"\n".join(found).decode("utf-8", "replace")


def _python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", f"{_PRELUDE}\n{code}\ntime.sleep(60)")


def test_all_of_this_holds_for_a_plain_user() -> None:
    """Some of these tests again: limits need no rights."""
    as_plain_user(Path(__file__), only="hides or no_place or full_workspace or memory")
