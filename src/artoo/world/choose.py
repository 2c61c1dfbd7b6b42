"""Chooses the best tier that works here, remembers it until the next boot, and says why others do not."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from artoo.contracts.errors import SandboxError
from artoo.disk.whole import write_whole
from artoo.ports.sandbox import Sandbox, TierDiagnosis, TierName
from artoo.world import bubblewrap, namespaces, seccomp, steps
from artoo.world.bubblewrap import BubblewrapVariant
from artoo.world.orphans import end_orphans
from artoo.world.overlay import OverlaySandbox
from artoo.world.programs import find_program
from artoo.world.readonly import ReadOnlyFirst, landlock, seatbelt
from artoo.world.reasons import explain
from artoo.world.selftest import prove
from artoo.world.stage import memory_stage_home
from artoo.world.unconfined import AskForEverything

_FORMAT = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to contain commands that may work here. `key` names it in the cache.

    `stage_homes` are the places where its upper layers may lie, best first; each must prove itself.
    """

    tier: TierName
    key: str
    build: Callable[[tuple[Path, ...]], Sandbox]
    stage_homes: tuple[Path, ...]


class _Remembered(BaseModel):
    """The cache file: which candidate was proved, on which boot of which machine, by which artoo."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int
    boot: str
    kernel: str
    user: int
    python: str
    key: str
    stage_homes: tuple[Path, ...]


def candidates(artoo_home: Path) -> Iterator[Candidate]:
    """All ways that make sense on this system, best first; *none* is not among them."""
    on_disk = artoo_home / "stage"
    if sys.platform == "darwin":
        yield Candidate(
            "seatbelt", "seatbelt", lambda _: ReadOnlyFirst("seatbelt", seatbelt, artoo_home), (on_disk,)
        )
        return
    if not (sys.platform.startswith("linux") and seccomp.supported()):
        return
    places = (memory_stage_home(), on_disk) if Path("/dev/shm").is_dir() else (on_disk,)
    for program in bubblewrap.find_bubblewrap():
        for user_namespace in (False, True) if os.geteuid() == 0 else (True,):
            for ahead in (True, False) if steps.supported() else (False,):
                yield _bubblewrap(BubblewrapVariant(program, user_namespace, ahead), artoo_home, places)
    build = functools.partial(OverlaySandbox, "namespaces", namespaces.confine, artoo_home, over_mounts=False)
    yield Candidate("namespaces", "namespaces", build, places)
    yield Candidate("landlock", "landlock", lambda _: ReadOnlyFirst("landlock", landlock, artoo_home), (on_disk,))


def _bubblewrap(variant: BubblewrapVariant, artoo_home: Path, places: tuple[Path, ...]) -> Candidate:
    build = functools.partial(
        OverlaySandbox,
        "bubblewrap",
        functools.partial(bubblewrap.confine, variant),
        artoo_home,
        over_mounts=not variant.user_namespace,
        waits=True,
    )
    key = f"bubblewrap:{variant.program}:{variant.user_namespace}:{variant.ahead}"
    return Candidate("bubblewrap", key, build, places)


async def _prove(candidate: Candidate, artoo_home: Path) -> tuple[tuple[Path, ...], str]:
    """The stage homes with which the candidate holds, and what was wrong with the last that did not."""
    proved: list[Path] = []
    problem = ""
    for place in candidate.stage_homes:
        trial = await prove(candidate.build((place,)), _proving_ground(artoo_home))
        if not trial.problem:
            proved.append(place)
        problem = trial.problem or problem
    return tuple(proved), problem


def _proving_ground(artoo_home: Path) -> Path:
    """Where the throw-away home of a self-test lies: beside artoo's own, which commands cannot see into."""
    beside = artoo_home.parent
    return beside if os.access(beside, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


async def open_sandbox(artoo_home: Path, report: Callable[[TierDiagnosis], None] | None = None) -> Sandbox:
    """The best sandbox that proves itself here; at worst the one that asks for everything.

    What was proved is kept until the next boot. `report` hears of every tier that was tried, also of failures.
    """
    artoo_home = await asyncio.to_thread(_made, artoo_home)
    if sys.platform.startswith("linux"):
        await asyncio.to_thread(end_orphans)
    cache = artoo_home / "sandbox-tier.json"
    listed = list(candidates(artoo_home))
    known = _recall(cache)
    for candidate in listed:
        if (
            known is not None
            and known.key == candidate.key
            and set(known.stage_homes) <= set(candidate.stage_homes)
        ):
            return candidate.build(known.stage_homes)
    for candidate in listed:
        proved, problem = await _prove(candidate, artoo_home)
        if report is not None:
            report(_diagnosis(candidate, "" if proved else problem))
        if proved:
            _remember(cache, candidate.key, proved)
            return candidate.build(proved)
    return AskForEverything(artoo_home)


async def diagnose(artoo_home: Path) -> tuple[TierDiagnosis, ...]:
    """Every tier of this system, tried afresh, best first: whether it works, else the cause and the remedy."""
    artoo_home = await asyncio.to_thread(_made, artoo_home)
    found: dict[TierName, TierDiagnosis] = {}
    for candidate in candidates(artoo_home):
        if candidate.tier in found and found[candidate.tier].works:
            continue
        proved, problem = await _prove(candidate, artoo_home)
        diagnosis = _diagnosis(candidate, "" if proved else problem)
        if diagnosis.works or candidate.tier not in found:
            found[candidate.tier] = diagnosis
    if "bubblewrap" not in found and sys.platform.startswith("linux"):
        found = {"bubblewrap": explain("bubblewrap", "bubblewrap is not installed"), **found}
    return (*found.values(), TierDiagnosis("none", True, "asks before every command"))


def _made(artoo_home: Path) -> Path:
    """The real path: below a private /tmp, a way through a link or a `..` may not exist. Raises SandboxError."""
    real = Path(os.path.realpath(artoo_home.expanduser()))
    try:
        real.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        advice = "set ARTOO_HOME to a place that can be written"
        raise SandboxError(f"{real} cannot be made: {error.strerror}; {advice}") from error
    return real


def _diagnosis(candidate: Candidate, problem: str) -> TierDiagnosis:
    return explain(candidate.tier, problem) if problem else TierDiagnosis(candidate.tier, True)


def _identity(key: str, stage_homes: tuple[Path, ...]) -> _Remembered:
    boot = Path("/proc/sys/kernel/random/boot_id")
    return _Remembered(
        format=_FORMAT,
        boot=boot.read_text(encoding="utf-8").strip() if boot.exists() else "",
        kernel=platform.release(),
        user=os.geteuid(),
        python=f"{sys.executable} {platform.python_version()} {find_program('bwrap')}",
        key=key,
        stage_homes=stage_homes,
    )


def _recall(cache: Path) -> _Remembered | None:
    try:
        known = _Remembered.model_validate(json.loads(cache.read_bytes()))
    except (OSError, ValueError, RecursionError):  # nothing remembered, or by another version: prove it again
        return None
    return known if known == _identity(known.key, known.stage_homes) and known.boot else None


def _remember(cache: Path, key: str, stage_homes: tuple[Path, ...]) -> None:
    # The standard library's JSON: paths need not be UTF-8, and pydantic's could neither write nor read them.
    said = json.dumps(_identity(key, stage_homes).model_dump(), default=os.fspath)
    write_whole(cache, said.encode(), sync=False)
