"""A command that takes too much is ended; the sandbox, and what else runs in it, goes on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from living import PATIENCE, Commands, World, as_plain_user, until

from artoo.ports.workspace import MIB, SandboxLimits

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
    "memory": ("memory_limit", "x = bytearray(900 * MIB)"),
    "five gigabytes of memfd": (
        "memory_limit",
        "x = [fill(os.memfd_create('x'), 100) for _ in range(50)]",
    ),
    "shared memory": ("memory_limit", "m = mmap.mmap(-1, 900 * MIB); [m.write(BLOCK) for _ in range(900)]"),
    "buffers of sockets": ("memory_limit", "x = [socket.socketpair() for _ in range(450)]"),
    "open files without a name": (
        "disk_limit",
        "x = [unlinked(f'x{n}', 50) for n in range(20)]",
    ),
    "a full /tmp": (
        "disk_limit",
        "x = [fill(os.open(f'/tmp/{n}', os.O_RDWR | os.O_CREAT), 50) for n in range(20)]",
    ),
    "a full project": ("disk_limit", "x = [fill(os.open(f'{n}', os.O_RDWR | os.O_CREAT), 50) for n in range(20)]"),
    "many files": ("disk_limit", "many('.', lambda path: os.close(os.open(path, os.O_CREAT)))"),
    "many links": ("disk_limit", "many('/tmp', lambda path: os.symlink('x', path))"),
}
"""Ways to take more than the limits, and the status of the command then."""

_CANNOT = {
    "/run": "fill(os.open('/run/x', os.O_WRONLY | os.O_CREAT), 400)",
    "/dev": "fill(os.open('/dev/x', os.O_WRONLY | os.O_CREAT), 400)",
    "/dev/shm": "fill(os.open('/dev/shm/x', os.O_WRONLY | os.O_CREAT), 900)",
    "inotify": "x = [libc.inotify_init() for _ in range(10_000)]; min(x) < 0 and sys.exit(1)",
    "timers": "kind, timer = (ctypes.c_int * 16)(0, 0, 0, 1), ctypes.c_void_p()\n"
    "x = [libc.timer_create(1, kind, ctypes.byref(timer)) for _ in range(10_000)]; min(x) < 0 and sys.exit(1)",
    "timers as files": "x = [libc.timerfd_create(1, 0) for _ in range(70_000)]; min(x) < 0 and sys.exit(1)",
    "System V memory": "x = [libc.shmget(0, 128 << 10, 0o600) for _ in range(100)]; min(x) < 0 and sys.exit(1)",
    "message queues": "x = [libc.msgget(0, 0o600) for _ in range(40_000)]; min(x) < 0 and sys.exit(1)",
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
    "process groups": "os.setpgid(0, 0)",
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
    assert ended.status == "disk_limit" and "450 MiB" in ended.notes[0], ended
    assert (await little.run("true")).status == "ok"
    assert (await little.run(*_python(f"{fill.format(place='.')}; sys.exit()"))).status == "disk_limit"
    assert await little.says("rm /tmp/?; echo on") == "on\n"


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
    """Limits need no rights."""
    as_plain_user(Path(__file__))
