"""A control group (cgroup v2) of a command's own: the kernel counts its memory and tasks, and ends all of it.

A program joins before it is anything else: a small shell writes itself into the group and becomes it. What it
starts is in the group from its first instruction on, and cannot leave: nothing inside can write to any group (the
self-test tries). The directory is locked by the artoo that made it; what nobody holds was left by one that was
killed.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import Limits, RunStatus
from artoo.world.cgroup_place import Place, find_place
from artoo.world.mounts import in_memory
from artoo.world.threads import or_undone

_NAME = "artoo-command-"
_JOIN = 'echo 0 > "$0" && exec "$@"'
_RECLAIMED = ("active_file", "inactive_file", "slab_reclaimable")
_END_ROUNDS, _END_PAUSE = 200, 0.01
_TRIES, _TRIAL_SECONDS = 20, 5.0


@dataclass(frozen=True, slots=True)
class Group:
    """One command's group. Sizes in bytes."""

    path: Path

    def joining(self, argv: Sequence[str]) -> tuple[str, ...]:
        """What to start so that `argv` runs in the group, in the same process."""
        return ("/bin/sh", "-c", _JOIN, str(self.path / "cgroup.procs"), *argv)

    def members(self) -> tuple[int, ...]:
        return tuple(int(word) for word in self._read("cgroup.procs").split())

    def memory_bytes(self) -> int:
        """What it holds and cannot be taken from it: caches of files on disk are the kernel's to drop."""
        current = self._read("memory.current")
        kept = self._table("memory.stat")
        return int(current or 0) - sum(kept.get(name, 0) for name in _RECLAIMED)

    def hit(self) -> RunStatus | None:
        """The limit at which the kernel killed or refused something of it."""
        if self._table("memory.events").get("oom_kill", 0):
            return "memory_limit"
        return "process_limit" if self._table("pids.events").get("max", 0) else None

    def kill(self) -> None:
        """Ends every process of it at once, also one that is being made just now."""
        with suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")

    def limit(self, limits: Limits, in_memory: int) -> None:
        """Sets the bounds. `in_memory`: what may lie in files in memory besides, which count as disk; in bytes."""
        for name, value in (
            ("memory.swap.max", 0),
            ("memory.oom.group", 1),
            ("memory.max", limits.memory_bytes + in_memory),
            ("pids.max", limits.processes),
        ):
            if (
                name != "memory.swap.max" or (self.path / name).exists()
            ):  # a kernel without swap has no bound for it
                (self.path / name).write_text(str(value))

    def remove(self) -> bool:
        """Whether the directory is gone; it stays as long as something in it lives."""
        try:
            self.path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def _read(self, name: str) -> str:
        try:
            return (self.path / name).read_text()
        except OSError:  # it was removed from outside: nothing of it lives
            return ""

    def _table(self, name: str) -> dict[str, int]:
        return {
            words[0]: int(words[1]) for words in map(str.split, self._read(name).splitlines()) if len(words) == 2
        }


@asynccontextmanager
async def grouped(limits: Limits, writes: tuple[Path, ...]) -> AsyncGenerator[Group | None]:
    """A group for one command, None where there is no place for one. At the end nothing of it lives.

    `writes`: the directories that count for its disk limit, which in memory are charged to the group too.
    """
    found = _place[0] if _place else await asyncio.to_thread(place)
    if found.parent is None:
        yield None
        return
    parent = found.parent
    group, lock = await or_undone(lambda: _made(parent), _unmade)
    try:
        try:
            group.limit(limits, limits.disk_bytes if in_memory(writes) else 0)
        except OSError as error:
            raise SandboxError(f"the limits of {group.path} cannot be set: {error.strerror}") from error
        yield group
    finally:
        group.kill()
        try:
            for _ in range(_END_ROUNDS):
                if group.remove():
                    break
                await asyncio.sleep(_END_PAUSE)
        finally:
            os.close(lock)


_place: list[Place] = []
_looking = Lock()


def place() -> Place:
    """Where groups can be made: looked for, tried and swept once a process. Blocking."""
    with _looking:
        if not _place:
            _place.append(_proved(find_place()))
        return _place[0]


def _proved(found: Place) -> Place:
    """`found`, if a process can be put into a group there, bounded and ended."""
    if found.parent is None:
        return found
    sweep(found.parent)
    try:
        problem = _trial(found.parent)
    except (OSError, SandboxError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    return Place(None, f"{found.parent} cannot be used: {problem}") if problem else found


def _trial(parent: Path) -> str:
    """What keeps a process from being put into a group, bounded and ended there; empty if nothing does."""
    group, lock = _made(parent)
    try:
        if not (group.path / "cgroup.kill").exists():
            return "the kernel is older than 5.14"
        group.limit(Limits(), 0)
        argv = group.joining(("/bin/sh", "-c", "echo in; read line"))
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe) as tried:
            assert tried.stdout is not None and tried.stderr is not None
            if tried.stdout.readline() != b"in\n":
                return tried.stderr.read().decode("utf-8", "replace").strip()
            inside = group.members() == (tried.pid,)
            group.kill()
            ended = tried.wait(_TRIAL_SECONDS)
        return "" if inside and ended < 0 else "a process in it is not seen or not ended"
    finally:
        group.remove()
        os.close(lock)


def sweep(parent: Path) -> None:
    """Ends and removes what an artoo left that was killed: groups of ours that nobody holds."""
    for path in parent.glob(f"{_NAME}*"):
        lock = _held(path)
        if lock is not None:
            left = Group(path)
            left.kill()
            left.remove()  # what still dies in it is swept by the next
            os.close(lock)


def _made(parent: Path) -> tuple[Group, int]:
    """A new group, and the lock that says that it is in use. Another artoo may sweep it before it is locked."""
    for _ in range(_TRIES):
        path = parent / f"{_NAME}{uuid.uuid4().hex}"
        try:
            path.mkdir(mode=0o755)
        except OSError as error:
            raise SandboxError(f"no group can be made in {parent}: {error.strerror}") from error
        lock = _held(path)
        if lock is not None:
            if path.exists():
                return Group(path), lock
            os.close(lock)
    raise SandboxError(f"groups that are made in {parent} go again: something else removes them")


def _unmade(made: tuple[Group, int]) -> None:
    """Nobody waits for it any more: nothing has joined it yet."""
    group, lock = made
    group.remove()
    os.close(lock)


def _held(path: Path) -> int | None:
    """A lock on a group of ours, None when it is gone, another user's, or held by its maker."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
