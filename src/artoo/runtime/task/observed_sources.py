"""Publish each observation that a role makes outside the stream, for replay.

The classes here stand between a role and its sources. Each reads through an `Eyes` object. That of a live task
reads the source and publishes the answer. That of a replay (`artoo.runtime.replay`) takes the answer from the log.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar, cast

from pydantic import BaseModel, JsonValue

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Calibration, KnownRequest, Megram, Potentials
from artoo.contracts.recording import Observed, Source
from artoo.contracts.steering import Heard
from artoo.contracts.tags import Pair
from artoo.ports.bus import Port
from artoo.ports.evidence import DIFFERENCE_CHARACTERS, CommandView, EvidenceSource, FileView, Language, Trial
from artoo.ports.recall import KNOWN_REQUESTS, Recall
from artoo.ports.surroundings import Surroundings, SurroundingsSource, TurnSource

T = TypeVar("T")


class Eyes(Protocol):
    """The way in which one role reads sources outside the stream."""

    async def look(self, source: Source, question: str, kind: type[T], look: Callable[[], Awaitable[T]]) -> T:
        """Return the answer of a source, of type `kind`. It is published on the stream before. Raises
        MemoryStoreError if the source is memory and fails.
        """
        ...

    async def between(self, source: Source, kind: type[T], look: Callable[[], Awaitable[T]]) -> T:
        """Return the observations between two turns as a tuple. They are only published if there are any."""
        ...

    async def last(self, source: Source, kind: type[T], look: Callable[[], Awaitable[T]]) -> T:
        """Do the same after a turn that an ExecutionResult may follow instead of a turn."""
        ...


class LiveEyes:
    """Reads sources, and publishes each answer through the role's port."""

    def __init__(self, port: Port) -> None:
        self._port = port

    async def look(self, source: Source, question: str, kind: type[T], look: Callable[[], Awaitable[T]]) -> T:
        try:
            seen = await look()
        except MemoryStoreError as error:
            self._port.publish(Observed(source=source, question=question, error=str(error)))
            raise
        self._port.publish(Observed(source=source, question=question, answer=plain(seen)))
        return seen

    async def between(self, source: Source, kind: type[T], look: Callable[[], Awaitable[T]]) -> T:
        found = await look()
        if found:
            self._port.publish(Observed(source=source, answer=plain(found)))
        return found

    async def last(self, source: Source, kind: type[T], look: Callable[[], Awaitable[T]]) -> T:
        return await self.between(source, kind, look)


def plain(seen: object) -> JsonValue:
    """Convert an observation to JSON values. Contracts and dataclasses become objects, tuples become lists."""
    if seen is None or isinstance(seen, (str, bool, int, float)):  # the most frequent case comes first
        return seen
    if isinstance(seen, BaseModel):
        return cast("JsonValue", seen.model_dump(mode="json"))
    if dataclasses.is_dataclass(seen) and not isinstance(seen, type):
        return {field.name: plain(getattr(seen, field.name)) for field in dataclasses.fields(seen)}
    if isinstance(seen, (tuple, list)):
        return [plain(item) for item in cast("Sequence[object]", seen)]
    if isinstance(seen, Mapping):
        return {key: plain(value) for key, value in cast("Mapping[str, object]", seen).items()}
    return cast("JsonValue", seen)


@dataclasses.dataclass(frozen=True, slots=True)
class WatchedEvidence:
    """An EvidenceSource whose observations are all published on the stream."""

    inner: EvidenceSource
    eyes: Eyes

    async def file(self, path: str) -> FileView:
        return await self.eyes.look(Source.FILE, path, FileView, lambda: self.inner.file(path))

    async def command(self, command: str) -> CommandView:
        return await self.eyes.look(Source.COMMAND, command, CommandView, lambda: self.inner.command(command))

    async def trial(self, language: Language, program: str) -> Trial:
        asked = f"{language}: {program}"
        return await self.eyes.look(Source.TRIAL, asked, Trial, lambda: self.inner.trial(language, program))

    async def difference(self, limit: int = DIFFERENCE_CHARACTERS) -> str:
        return await self.eyes.look(Source.DIFFERENCE, str(limit), str, lambda: self.inner.difference(limit))


@dataclasses.dataclass(frozen=True, slots=True)
class WatchedSurroundings:
    """A SurroundingsSource whose observations are all published on the stream."""

    inner: SurroundingsSource
    eyes: Eyes

    async def look(self, request: str) -> Surroundings:
        return await self.eyes.look(Source.SURROUNDINGS, request, Surroundings, lambda: self.inner.look(request))


@dataclasses.dataclass(frozen=True, slots=True)
class WatchedTurns(WatchedSurroundings):
    """The surroundings of one subtask, whose observations are published on the stream. The news that its executor
    gets between two turns are published too."""

    inner: TurnSource

    async def news(self) -> tuple[str, ...]:
        return await self.eyes.between(Source.NEWS, tuple[str, ...], self.inner.news)

    async def heard(self, arrived: Callable[[], Awaitable[tuple[Heard, ...]]]) -> tuple[Heard, ...]:
        return await self.eyes.between(Source.MESSAGES, tuple[Heard, ...], arrived)

    async def heard_last(self, arrived: Callable[[], Awaitable[tuple[Heard, ...]]]) -> tuple[Heard, ...]:
        return await self.eyes.last(Source.LAST_MESSAGES, tuple[Heard, ...], arrived)


@dataclasses.dataclass(frozen=True, slots=True)
class WatchedRecall:
    """The reading interface of memory. Every answer that roles get from it is published on the stream."""

    inner: Recall
    eyes: Eyes

    async def potentials_of(self, pairs: Sequence[Pair]) -> tuple[Potentials, ...]:
        asked = "; ".join(f"{pair.space} {pair.entity}" for pair in pairs)
        kind = tuple[Potentials, ...]
        return await self.eyes.look(Source.POTENTIALS, asked, kind, lambda: self.inner.potentials_of(pairs))

    async def calibrate(self, kind: str, pairs: Sequence[Pair] = ()) -> Calibration:
        return await self.eyes.look(
            Source.CALIBRATION, kind, Calibration, lambda: self.inner.calibrate(kind, pairs)
        )

    async def alternatives(self, kind: str, limit: int = 5) -> tuple[Potentials, ...]:
        found = tuple[Potentials, ...]
        return await self.eyes.look(Source.ALTERNATIVES, kind, found, lambda: self.inner.alternatives(kind, limit))

    async def requests(self, limit: int = KNOWN_REQUESTS) -> tuple[KnownRequest, ...]:
        kind = tuple[KnownRequest, ...]
        return await self.eyes.look(Source.REQUESTS, "", kind, lambda: self.inner.requests(limit))

    async def tool_pairs(self, limit: int = 64) -> tuple[Pair, ...]:
        kind = tuple[Pair, ...]
        return await self.eyes.look(Source.TOOL_PAIRS, "", kind, lambda: self.inner.tool_pairs(limit))

    async def taught_by(self, task_id: str) -> tuple[Megram, ...]:
        kind = tuple[Megram, ...]
        return await self.eyes.look(Source.TAUGHT, task_id, kind, lambda: self.inner.taught_by(task_id))
