"""Tiers 3 and 4: a command first runs with all files read-only; what needs more is asked about and run again.

Nothing is staged here, so a confirmation covers the command, not a list of its effects; the caller must say so.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.ports.sandbox import SandboxRequest, TierName, ViewRun
from artoo.world import seccomp
from artoo.world.closed import closed_paths
from artoo.world.edge.environment import network_environment
from artoo.world.environment import cleaned
from artoo.world.group import LaunchPlan, launched
from artoo.world.limits import limited
from artoo.world.open_settings import lay_git_extract
from artoo.world.process import Confined, Ended, run_confined
from artoo.world.process_group import led
from artoo.world.programs import find_program, worked_in
from artoo.world.runner import Over, run_of
from artoo.world.stage import make_stage
from artoo.world.unconfined import FOR_REAL, ended_for_real

_REFUSED_BY_SYSTEM = re.compile(
    rb"permission denied|operation not permitted|read-only file system|EACCES|EPERM|EROFS", re.I
)
_NODES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")
_SOURCES = ("/dev/random", "/dev/urandom")


@dataclass(frozen=True, slots=True)
class ReadOnlyView:
    """A request, its writable scratch directory, what it must not read, and the copies in which it may write."""

    request: SandboxRequest
    scratch: Path
    env: dict[str, str]
    hidden: tuple[Path, ...]
    copies: tuple[Path, ...] = ()


ReadOnlyDriver = Callable[[ReadOnlyView], AbstractContextManager[Confined]]


class ReadOnlyFirst:
    """A Sandbox that holds files read-only."""

    def __init__(self, tier: TierName, driver: ReadOnlyDriver, artoo_home: Path) -> None:
        self._tier: TierName = tier
        self._driver = driver
        self._artoo_home = artoo_home

    @property
    def tier(self) -> TierName:
        return self._tier

    async def look(self, request: SandboxRequest) -> ViewRun:
        """See `ports.sandbox.Sandbox`."""
        self._require_no_network(request)
        stage = await asyncio.to_thread(make_stage, self._artoo_home / "stage", uuid.uuid4().hex, ())
        try:
            with self._driver(self._view(request, stage.scratch)) as program:
                ended = await run_confined(program, request.limits, request.stdin, request.printed)
        finally:
            await asyncio.to_thread(stage.discard)
        return run_of(self._tier, Over(ended, ("ran with all files read-only",), _wanted_more(ended)))

    async def run_in_copies(self, request: SandboxRequest, copies: tuple[Path, ...]) -> Over:
        """Runs a command in copies of the person's directories, where it may write; the rest is read-only."""
        if request.unconfined and not request.read_only:
            return Over(await ended_for_real(request), (FOR_REAL,))
        self._require_no_network(request)
        assert request.scratch is not None
        view = replace(self._view(request, request.scratch), copies=copies)
        with self._driver(view) as program:
            ended = await run_confined(program, request.limits, request.stdin, request.printed)
        ask = ended.limit is None and not request.read_only and _was_refused(ended)
        notes = ("it was refused something; running it for real needs a confirmation",) if ask else ()
        return Over(ended, notes, ask)

    def _require_no_network(self, request: SandboxRequest) -> None:
        if request.hosts:
            raise SandboxError(
                f"network by host is not offered in this sandbox ({self._tier}): a command has no network of its "
                "own; artoo doctor says what the better ones need"
            )

    def _view(self, request: SandboxRequest, own_scratch: Path) -> ReadOnlyView:
        scratch = request.scratch or own_scratch
        env = cleaned(os.environ, request)
        env |= network_environment((), request.roots.home)
        env |= {"TMPDIR": str(scratch), "XDG_CACHE_HOME": str(scratch / ".cache")}
        env |= lay_git_extract(request.roots, scratch, str(scratch))
        hidden = map(Path, closed_paths(request.roots, self._artoo_home, request.hide))
        return ReadOnlyView(request, scratch, env, tuple(path for path in hidden if path != scratch))


def _wanted_more(ended: Ended) -> bool:
    """Whether the run may have been kept from something: it failed, or it says so and went on."""
    if ended.limit is not None:
        return False
    return ended.exit_code != 0 or _was_refused(ended)


def _was_refused(ended: Ended) -> bool:
    return bool(_REFUSED_BY_SYSTEM.search(ended.stderr.head + ended.stderr.tail))


# --- Landlock ---------------------------------------------------------------------------------------------------


@contextmanager
def landlock(view: ReadOnlyView) -> Generator[Confined, None, None]:
    """The request under Landlock and the stricter filter."""
    request = view.request
    plan = LaunchPlan(
        mode="landlock",
        argv=limited(request.argv, request.limits, among_others=True),
        env=view.env,
        cwd=str(request.cwd),
        filter=seccomp.filter_program(without_namespaces=True).hex(),
        readable=(*readable_around((*view.hidden, Path("/dev"))), *_SOURCES),
        writable=(str(view.scratch), *map(str, view.copies)),
        devices=_NODES,
    )
    with launched(plan, request.limits, (view.scratch, *view.copies)) as (program, _):
        yield program


def readable_around(hidden: tuple[Path, ...]) -> Iterator[str]:
    """The largest trees that hold nothing hidden: Landlock can only allow, so what is hidden is gone around.

    It means directories and not paths: one that has to be gone around is not allowed under another name either.
    """
    opened = {Path("/")} | {ancestor for path in hidden for ancestor in path.parents}
    around = {None, *map(_identity, opened)}
    for directory in sorted(opened):
        try:
            children = sorted(directory.iterdir())
        except OSError:  # not readable for us, so not for the command
            continue
        for child in children:
            if child not in opened and child not in hidden and _identity(child) not in around:
                yield str(child)


def _identity(path: Path) -> tuple[int, int] | None:
    """None for a link, and for what has gone meanwhile."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return None if stat.S_ISLNK(status.st_mode) else (status.st_dev, status.st_ino)


# --- seatbelt (macOS) -------------------------------------------------------------------------------------------


@contextmanager
def seatbelt(view: ReadOnlyView) -> Generator[Confined, None, None]:
    """The request under macOS's `sandbox-exec`. Raises SandboxError when it is not on PATH."""
    request = view.request
    program = find_program("sandbox-exec", worked_in(request.roots))
    if program is None:
        raise SandboxError("cannot start the sandbox (sandbox-exec): it is not on your PATH")
    argv = (program, "-p", seatbelt_profile((view.scratch, *view.copies), view.hidden))
    whole = (*argv, *limited(request.argv, request.limits, among_others=True))
    with led(whole, view.env, request.cwd) as confined:
        yield confined


def seatbelt_profile(writable: tuple[Path, ...], hidden: tuple[Path, ...]) -> str:
    """A profile in Apple's sandbox language: read-only files, no network, no services, no signals to others."""
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny network*)",
        "(deny file-write*)",
        "(deny appleevent-send)",
        "(deny mach-lookup)",
        '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
        '(allow mach-lookup (global-name "com.apple.system.logger"))',
        "(deny signal (target others))",
        "(deny process-info* (target others))",
        *(f"(allow file-write* (subpath {_quoted(path)}))" for path in writable),
        *(f'(allow file-write-data (literal "{node}"))' for node in _NODES),
        *(f"(deny file-read* (subpath {_quoted(path)}))" for path in hidden if not _holds(path, writable)),
    ]
    return "\n".join(lines) + "\n"


def _holds(path: Path, inner: tuple[Path, ...]) -> bool:
    return any(one.is_relative_to(path) for one in inner)


def _quoted(path: Path) -> str:
    text = str(path)
    if any(ord(character) < 32 for character in text):
        raise SandboxError(f"{path!r} holds control characters, which a seatbelt profile cannot name: rename it")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
