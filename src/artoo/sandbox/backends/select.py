"""Select the best working backend, and cache the choice in `sandbox-backend.json`."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_whole
from artoo.ports.workspace import BackendName
from artoo.sandbox.backends.bubblewrap import BubblewrapBackend, find_bubblewrap
from artoo.sandbox.backends.copying import CopyBackend
from artoo.sandbox.backends.diagnostics import (
    APPARMOR_PROFILE,
    BackendDiagnosis,
    DiagnosedMachine,
    explain,
    is_explained,
)
from artoo.sandbox.backends.selftest import prove
from artoo.sandbox.limits import seccomp
from artoo.sandbox.protocols import Backend
from artoo.sandbox.reading.programs import this_python

_CACHE = "sandbox-backend.json"
_FORMAT = "1"
_SETTINGS = (
    "kernel/random/boot_id",
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/unprivileged_userns_clone",
    "user/max_user_namespaces",
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A backend that may be selected. `key`: the name under which the choice is stored in the cache."""

    key: str
    backend: Backend


def candidates() -> Iterator[Candidate]:
    """Yield all backends that are possible on this system, best first. `none` is not among them."""
    if sys.platform == "darwin":
        yield Candidate("seatbelt", CopyBackend("seatbelt"))
    if not (sys.platform.startswith("linux") and seccomp.supported()):
        return
    for program in find_bubblewrap():
        for user_namespace in (False, True) if os.geteuid() == 0 else (True,):
            key = f"bubblewrap:{program}:{user_namespace}"
            yield Candidate(key, BubblewrapBackend(program, user_namespace))
    yield Candidate("landlock", CopyBackend("landlock"))


async def open_backend(artoo_home: Path, report: Callable[[BackendDiagnosis], object] | None = None) -> Backend:
    """Return the best backend that passes its self-test here. If no backend does, return `none`, with which all
    commands need approval.

    `report` is called with every backend that was tried, also if it failed. Raises SandboxError if `artoo_home`
    cannot be made.
    """
    home = await asyncio.to_thread(_made, artoo_home)
    known = _recall(home / _CACHE)
    # A program that was deleted is no longer a candidate, so a stored key never starts it.
    for candidate in candidates():
        if known == candidate.key:
            return candidate.backend
    return await _try_backends(home, report or (lambda _: None), every=False)


async def diagnose(artoo_home: Path) -> tuple[BackendDiagnosis, ...]:
    """Test every backend of this system without using the cache, best first. Store the best one that works.

    Raises SandboxError if `artoo_home` cannot be made.
    """
    home = await asyncio.to_thread(_made, artoo_home)
    found: dict[BackendName, BackendDiagnosis] = {}
    if sys.platform.startswith("linux") and not any(find_bubblewrap()):
        found["bubblewrap"] = explain("bubblewrap", "", DiagnosedMachine(home, None))

    def note(one: BackendDiagnosis) -> None:
        if one.works or one.backend not in found:
            found[one.backend] = one

    await _try_backends(home, note, every=True)
    return (*found.values(), BackendDiagnosis("none", True))


async def _try_backends(home: Path, report: Callable[[BackendDiagnosis], object], *, every: bool) -> Backend:
    """Test backends until one works. With `every`, go on until one of each kind works. Store the best one."""
    best: Candidate | None = None
    working = set[BackendName]()
    is_sure = True
    for candidate in candidates():
        if candidate.backend.name in working:
            continue
        diagnosis = await _proved(candidate, home)
        report(diagnosis)
        if diagnosis.works:
            working.add(candidate.backend.name)
            if best is None and is_sure:
                _remember(home / _CACHE, candidate.key)
            best = best or candidate
            if not every:
                break
        # A failure without explanation may be temporary, so a worse backend is not stored permanently in that case.
        is_sure = is_sure and (diagnosis.works or is_explained(diagnosis))
    return CopyBackend("none") if best is None else best.backend


async def _proved(candidate: Candidate, home: Path) -> BackendDiagnosis:
    """Test one backend, and explain a failure."""
    problem = await prove(candidate.backend, home)
    if not problem:
        return BackendDiagnosis(candidate.backend.name, True)
    program = candidate.backend.program if isinstance(candidate.backend, BubblewrapBackend) else None
    return explain(candidate.backend.name, problem, DiagnosedMachine(home, program))


def _made(artoo_home: Path) -> Path:
    """Make artoo's home, and return its resolved path. Inside a sandbox, a link or a `..` in it may lead to another
    place."""
    real = Path(os.path.realpath(artoo_home.expanduser()))
    try:
        real.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        advice = "set ARTOO_HOME to a directory that can be written"
        raise SandboxError(f"{real} cannot be made: {error.strerror}; {advice}") from error
    return real


def _identity(key: str) -> list[str]:
    """Return the key of a choice together with all values on which the choice depends."""
    machine = DiagnosedMachine(Path("/"), None)
    settings = [machine.setting(name) for name in _SETTINGS]
    profile = APPARMOR_PROFILE.stat().st_mtime_ns if APPARMOR_PROFILE.exists() else 0
    python = f"{this_python()} {platform.python_version()}"
    return [key, _FORMAT, str(os.geteuid()), platform.release(), python, str(profile), *settings]


def _recall(cache: Path) -> str | None:
    """Return the key of the stored backend, if all values on which the choice depends are unchanged."""
    try:
        known = json.loads(cache.read_bytes())
        return known[0] if known == _identity(known[0]) else None
    except (OSError, ValueError, LookupError, TypeError):  # the file is missing, or another version wrote it
        return None


def _remember(cache: Path, key: str) -> None:
    write_whole(cache, json.dumps(_identity(key)).encode(), sync=False)
