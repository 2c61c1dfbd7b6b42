"""A sandbox's limits are watched from outside: by what its processes hold, whatever form that has."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import pytest

from artoo.ports.workspace import MIB, SandboxLimits
from artoo.sandbox.limits.monitor import Excess, SandboxMonitor
from artoo.sandbox.limits.usage import Held, Member, disk_usage, members_below

_LITTLE = SandboxLimits(memory_bytes=200 * MIB, processes=100, disk_bytes=100 * MIB, paths=4_000)
_PATIENCE = 20.0
_LEADER = """
import ctypes, json, signal, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # adopts orphans, as process 1 of a sandbox does
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    name, code = json.loads(line)
    subprocess.Popen((sys.executable, '-I', '-S', '-c', code), env={'ARTOO_PROCESS': name}, start_new_session=True)
    print('started', flush=True)
"""
_PRELUDE = """
import ctypes, mmap, os, socket, sys, threading, time
libc, MIB, BLOCK = ctypes.CDLL(None), 1 << 20, bytes(1 << 20)
def fill(where, count):
    for _ in range(count): os.write(where, BLOCK)
    return where
def memfd(count):
    return fill(os.memfd_create('x'), count)
def mapped(where):
    try: found = mmap.mmap(where, 0)
    finally: os.close(where)
    return found, [found[at] for at in range(0, len(found), 4096)]
def unlinked(count):
    name = f'x{os.getpid()}'
    where = os.open(name, os.O_RDWR | os.O_CREAT); os.unlink(name); return fill(where, count)
def children(count, work=lambda: None):
    for _ in range(count):
        if os.fork() == 0:
            os.setsid(); work(); time.sleep(60); os._exit(0)
"""


@dataclass
class _Sandbox:
    """A process that stands for a supervisor, and what the monitor reported about those below it."""

    leader: subprocess.Popen[bytes]
    excesses: list[Excess] = field(default_factory=list[Excess])
    reported: asyncio.Event = field(default_factory=asyncio.Event)
    monitor: SandboxMonitor | None = None

    def start(self, name: str, code: str) -> None:
        """Start a command, which stays for a minute after its code."""
        assert self.leader.stdin is not None and self.leader.stdout is not None and self.monitor is not None
        self.leader.stdin.write(json.dumps((name, f"{_PRELUDE}\n{code}\ntime.sleep(60)")).encode() + b"\n")
        self.leader.stdin.flush()
        assert self.leader.stdout.readline() == b"started\n"
        self.monitor.wake()

    def take(self, excess: Excess) -> None:
        """Receive an excess, and end the command as a sandbox does."""
        self.excesses.append(excess)
        self.reported.set()
        self._kill(excess)

    def _kill(self, excess: Excess) -> None:
        for one in members_below(self.leader.pid):
            if f"ARTOO_PROCESS={excess.command}".encode() in _environment(one.pid):
                _kill(one.pid)

    async def excess(self) -> Excess:
        """Wait for an excess."""
        async with asyncio.timeout(_PATIENCE):
            await self.reported.wait()
        self.reported.clear()
        return self.excesses[-1]

    def commands(self) -> set[str]:
        """Return the names of the commands that have processes."""
        found = (_environment(one.pid) for one in members_below(self.leader.pid))
        return {line.partition(b"=")[2].decode() for each in found for line in each if line.startswith(b"ARTOO_")}

    def until(self, members: int) -> None:
        """Wait until there are so many processes."""
        until = time.monotonic() + _PATIENCE
        while len(members_below(self.leader.pid)) != members:
            assert time.monotonic() < until
            time.sleep(0.01)

    def left(self) -> set[str]:
        """Wait until the commands that were to be ended are gone; return the names of the others."""
        ended = {one.command for one in self.excesses}
        until = time.monotonic() + _PATIENCE
        while (found := self.commands()) & ended and time.monotonic() < until:
            self._kill(self.excesses[-1])  # a process that forks while it is killed leaves some
            time.sleep(0.01)
        return found

    def end(self) -> None:
        """Kill everything."""
        assert self.leader.stdin is not None
        while members := members_below(self.leader.pid):
            for one in members:
                _kill(one.pid)
            time.sleep(0.01)
        with self.leader:
            self.leader.stdin.close()


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def _watched(place: Path, limits: SandboxLimits = _LITTLE) -> AsyncGenerator[_Sandbox]:
    """A sandbox whose commands work in `place`, with a monitor."""
    command = (sys.executable, "-I", "-S", "-c", _LEADER)
    pipe = subprocess.PIPE
    sandbox = _Sandbox(await asyncio.to_thread(subprocess.Popen, command, stdin=pipe, stdout=pipe, cwd=place))
    sandbox.monitor = SandboxMonitor(sandbox.leader.pid, (place,), limits, sandbox.take)
    watching = asyncio.create_task(sandbox.monitor.run())
    try:
        yield sandbox
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await asyncio.to_thread(sandbox.end)


_TOO_MUCH = {
    "memory of children": ("memory_limit", "children(8, lambda: globals().update(x=bytearray(40 * MIB)))"),
    "memory that is mapped and not open": ("memory_limit", "x = [mapped(memfd(60)) for _ in range(5)]"),
    "memfds of children": ("memory_limit", "children(8, lambda: memfd(40))"),
    "inotify": ("memory_limit", "x = [libc.inotify_init() for _ in range(10_000)]"),
    "processes": ("process_limit", "children(150)"),
    "files without names of children": ("disk_limit", "children(5, lambda: unlinked(30))"),
    "a reserved file": ("disk_limit", "os.posix_fallocate(os.open('x', os.O_WRONLY | os.O_CREAT), 0, 150 * MIB)"),
}
"""What `test_sandbox_limits` does not try in a sandbox."""


@pytest.mark.parametrize("what", _TOO_MUCH)
async def test_the_command_that_takes_too_much_is_ended(what: str, tmp_path: Path) -> None:
    """It is found however it holds what it took; another command of the sandbox goes on."""
    status, code = _TOO_MUCH[what]
    async with _watched(tmp_path) as sandbox:
        sandbox.start("p1", "children(20)")
        await asyncio.to_thread(sandbox.until, 21)
        sandbox.start("p2", code)
        excess = await sandbox.excess()
        assert (excess.status, excess.command) == (status, "p2"), excess.note
        assert "allowed" in excess.note
        assert await asyncio.to_thread(sandbox.left) == {"p1"}


async def test_pages_that_a_fork_shares_count_once(tmp_path: Path) -> None:
    """A server of 120 MiB with ten workers that share its memory has not used 1,200."""
    async with _watched(tmp_path) as sandbox:
        sandbox.start("p1", "x = bytearray(120 * MIB); children(10)")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.5):
                await sandbox.excess()


async def test_a_full_workspace_can_be_tidied_up(tmp_path: Path) -> None:
    """What an ended command left counts; the next command may still do a little, and not as much again."""
    async with _watched(tmp_path) as sandbox:
        sandbox.start("p1", "fill(os.open('x', os.O_WRONLY | os.O_CREAT), 150)")
        await sandbox.excess()
        sandbox.start("p2", "fill(os.open('y', os.O_WRONLY | os.O_CREAT), 2); os.unlink('x'); fill(3, 1)")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2.0):
                await sandbox.excess()
        sandbox.start("p3", "fill(os.open('z', os.O_WRONLY | os.O_CREAT), 150)")
        assert (await sandbox.excess()).command == "p3"


async def test_what_others_do_is_no_excess(tmp_path: Path) -> None:
    """Memory, tasks and disk that another program takes are not the sandbox's."""
    (tmp_path / "place").mkdir()
    async with _watched(tmp_path / "place") as sandbox, _watched(tmp_path, SandboxLimits()) as others:
        sandbox.start("p1", "x = mapped(memfd(1))")
        others.start("o1", "memfd(300); fill(os.open('x', os.O_WRONLY | os.O_CREAT), 150); children(150)")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3.0):
                await sandbox.excess()
        assert others.excesses == [] and sandbox.commands() == {"p1"}


async def test_an_idle_sandbox_costs_nothing(tmp_path: Path) -> None:
    """While nothing runs in it, nothing is read; a process that sleeps costs next to nothing."""
    async with _watched(tmp_path, SandboxLimits()) as sandbox:
        for code, most in (("time.sleep(1); sys.exit()", 0.01), ("", 0.1)):
            sandbox.start("p1", code)
            await asyncio.sleep(2.5)
            before = time.process_time()
            await asyncio.sleep(2.0)
            assert time.process_time() - before < most * 2.0


async def test_a_command_that_starts_while_the_last_one_ends_is_watched(tmp_path: Path) -> None:
    """However the starts fall between the looks."""
    async with _watched(tmp_path) as sandbox:
        for number in range(20):
            sandbox.start(f"p{number}", "sys.exit()")
            await asyncio.sleep(0.07)
        sandbox.start("last", "x = bytearray(300 * MIB)")
        assert (await sandbox.excess()).command == "last"


def test_files_that_come_and_go_hide_nothing(tmp_path: Path) -> None:
    """A directory in which names vanish between listing and looking still counts with all that is next to them."""
    for number in range(20):
        (tmp_path / f"below-{number}").mkdir()
        (tmp_path / f"below-{number}" / "large").write_bytes(b"x" * (MIB // 16))
    ended = Event()

    def come_and_go() -> None:
        while not ended.is_set():
            for number in range(30):
                (tmp_path / f"brief-{number}").touch()
            for number in range(30):
                (tmp_path / f"brief-{number}").unlink()

    restless = Thread(target=come_and_go)
    restless.start()
    try:
        seen = [disk_usage([tmp_path], 1 << 40, 1 << 20)[0] for _ in range(300)]
    finally:
        ended.set()
        restless.join()
    assert min(seen) >= 20 * MIB // 16


def test_all_names_of_a_whiteout_count_once(tmp_path: Path) -> None:
    """A command that removes a thousand files makes no thousand paths."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a whiteout outside an overlay")
    os.mknod(tmp_path / "0", 0o20000, 0)
    for number in range(1, 100):
        os.link(tmp_path / "0", tmp_path / str(number))
    assert disk_usage([tmp_path], 1 << 40, 1 << 20)[1] == 1


def test_a_tree_is_told_by_parents(tmp_path: Path) -> None:
    """Every process below the leader, whatever it is called, with its threads; no other process."""
    for pid, parent, name in ((5, 1, "a"), (6, 5, "b) S 1"), (7, 6, "c"), (8, 1, "other")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} 3 4 " + "0 " * 13 + "2 0\n")
    assert sorted(members_below(5, str(tmp_path))) == [Member(6, 5, 3, 4, 2), Member(7, 6, 3, 4, 2)]


def test_inherited_inotify_instances_count_once() -> None:
    """A server with many children has the instances of the server."""
    held = Held(watchers={1: 3, 2: 3, 3: 4})
    assert held.inotify_instances([Member(pid, parent, 1, 1, 1) for pid, parent in ((1, 0), (2, 1), (3, 1))]) == 4
