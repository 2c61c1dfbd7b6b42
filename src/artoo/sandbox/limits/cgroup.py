"""A control group (cgroup v2) for one sandbox, in which the kernel counts and bounds memory and tasks.

A small shell writes itself into the group and becomes bubblewrap. All that this starts is in the group from its
first instruction on and cannot leave, because nothing inside can write to any group. The directory is locked by the
artoo that made it; a group without a lock was left by an artoo that was killed, and is swept.

The kernel's bounds lie above the limits that the monitor enforces, because the kernel knows no commands:
it would kill processes of any command, and refuse new processes to all.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from artoo.contracts.errors import SandboxError
from artoo.ports.workspace import SandboxLimits
from artoo.sandbox.limits.cgroup_delegation import GroupParent, find_parent
from artoo.sandbox.reading.mount_table import in_memory

_NAME = "artoo-sandbox-"
_JOIN = 'echo 0 > "$0" && exec "$@"'
_RECLAIMED = ("active_file", "inactive_file", "slab_reclaimable")
_MORE_MEMORY, _MORE_TASKS = 256 << 20, 64
_END_ROUNDS, _END_PAUSE = 200, 0.01
_TRIES, _TRIAL_SECONDS = 20, 5.0


@dataclass(frozen=True, slots=True)
class Group:
    """The group of one sandbox. `lock`: a descriptor that says that it is in use."""

    path: Path
    lock: int

    def joining(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return what to start so that `argv` runs in the group, in the same process."""
        return ("/bin/sh", "-c", _JOIN, str(self.path / "cgroup.procs"), *argv)

    def members(self) -> tuple[int, ...]:
        """Return the pids of all processes in it."""
        return tuple(int(word) for word in self._read("cgroup.procs").split())

    def memory_bytes(self) -> int:
        """Return what it holds and cannot be taken from it: caches of files on disk are the kernel's to drop."""
        current = int(self._read("memory.current") or 0)
        table = (line.split() for line in self._read("memory.stat").splitlines())
        return current - sum(int(words[1]) for words in table if words[0] in _RECLAIMED)

    def limit(self, limits: SandboxLimits, directories: tuple[Path, ...]) -> None:
        """Set the bounds. Files in memory count as disk, so they may take memory besides. Raises OSError."""
        files = limits.disk_bytes if in_memory(directories) else 0
        if (self.path / "memory.swap.max").exists():  # a kernel without swap has no bound for it
            (self.path / "memory.swap.max").write_text("0")
        (self.path / "memory.max").write_text(str(limits.memory_bytes + files + _MORE_MEMORY))
        (self.path / "pids.max").write_text(str(limits.processes + _MORE_TASKS))

    async def close(self) -> None:
        """Kill every process in it, also one that is being made just now, and remove it. To be called once."""
        self.kill()
        try:
            for _ in range(_END_ROUNDS):
                if self.remove():
                    break
                await asyncio.sleep(_END_PAUSE)
        finally:
            os.close(self.lock)

    def kill(self) -> None:
        """Kill every process in it."""
        with suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")

    def remove(self) -> bool:
        """Remove the directory; return False while something in it lives."""
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


async def open_group(limits: SandboxLimits, directories: tuple[Path, ...]) -> Group | None:
    """Make a group for one sandbox; None where this machine has no place for one. Raises SandboxError.

    `directories` hold the sandbox's files.
    """
    found = _parent[0] if _parent else await asyncio.to_thread(group_parent)
    if found.path is None:
        return None
    group = _make(found.path)  # microseconds, and nothing may be left of it when the caller is cancelled
    try:
        group.limit(limits, directories)
    except OSError as error:
        group.remove()
        os.close(group.lock)
        raise SandboxError(f"the limits of {group.path} cannot be set: {error.strerror}") from error
    return group


_parent: list[GroupParent] = []
_looking = Lock()


def group_parent() -> GroupParent:
    """Return where groups can be made: looked for, tried and swept once in this process. Blocking."""
    with _looking:
        if not _parent:
            _parent.append(_tried(find_parent()))
        return _parent[0]


def _tried(found: GroupParent) -> GroupParent:
    """Return `found` if a process can be put into a group there, bounded and ended."""
    if found.path is None:
        return found
    sweep(found.path)
    try:
        problem = _trial(found.path)
    except (OSError, SandboxError, subprocess.TimeoutExpired) as error:
        problem = str(error)
    return GroupParent(None, f"{found.path} cannot be used: {problem}") if problem else found


def _trial(parent: Path) -> str:
    """Put a process into a group, bound it and end it; return what keeps that from working, empty if nothing."""
    group = _make(parent)
    try:
        if not (group.path / "cgroup.kill").exists():
            return "the kernel is older than 5.14"
        group.limit(SandboxLimits(), ())
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
        os.close(group.lock)


def sweep(parent: Path) -> None:
    """End and remove groups that an artoo left which was killed: groups of ours without a lock."""
    for path in parent.glob(f"{_NAME}*"):
        lock = _locked(path)
        if lock is not None:
            left = Group(path, lock)
            left.kill()
            left.remove()  # what still dies in it is swept by the next
            os.close(lock)


def _make(parent: Path) -> Group:
    """Make a group and lock it. Another artoo may sweep it before it is locked: then make another."""
    for _ in range(_TRIES):
        path = parent / f"{_NAME}{uuid.uuid4().hex}"
        try:
            path.mkdir(mode=0o755)
        except OSError as error:
            raise SandboxError(f"no group can be made in {parent}: {error.strerror}") from error
        lock = _locked(path)
        if lock is not None:
            if path.exists():
                return Group(path, lock)
            os.close(lock)
    raise SandboxError(f"groups that are made in {parent} vanish: another program removes them")


def _locked(path: Path) -> int | None:
    """Lock a group of this user; None when it is gone, another user's, or locked by its maker."""
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
