"""How a server wants to be asked: found out by trying once, then remembered (SPEC section 9)."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Protocol, cast

import orjson

from artoo.disk.whole import write_whole
from artoo.llm.completion import error_of, status_of
from artoo.llm.transport import TransportReply
from artoo.ports.clock import Clock


class Wire(StrEnum):
    """How structure is asked for, strongest first. `grammar` is llama.cpp's; `free` asks for none."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    GRAMMAR = "grammar"
    PROMPTED = "prompted"
    FREE = "free"


_WEAKER = {Wire.JSON_SCHEMA: Wire.JSON_OBJECT, Wire.JSON_OBJECT: Wire.PROMPTED, Wire.GRAMMAR: Wire.PROMPTED}
_OBJECTIONS = (
    "response_format",
    "response format",
    "json_schema",
    "json schema",
    "json_object",
    "json mode",
    "structured output",
    "guided",
    "grammar",
    "requested parameters",
)
_REFUSALS = (
    "support",
    "unrecognized",
    "unrecognised",
    "unknown",
    "unexpected",
    "permitted",
    "extra",
    "not allowed",
)
_OPTIONAL = ("temperature", "seed", "max_tokens", "cache_prompt", "stop", "stream_options")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one server accepts for one model.

    `compact` is how a llama.cpp server is held to JSON without room for indentation, `structure` any other.
    `without` names parameters that it refuses; refused `max_tokens` is sent as `max_completion_tokens`. `native`
    False: it refuses tools, and conversations are asked in the text dialect.
    """

    structure: Wire = Wire.JSON_SCHEMA
    compact: Wire = Wire.GRAMMAR
    without: tuple[str, ...] = ()
    native: bool = True

    def after(self, reply: TransportReply, wire: Wire, *, tools: bool = False) -> Dialect | None:
        """The dialect to try next when `reply` objects to how we asked (with `wire`); None when it does not.

        Only 400, 404, 422 and 501 can object, and only by naming the thing: any other refusal is a refusal.
        """
        if status_of(reply) not in (400, 404, 422, 501):
            return None
        text = error_of(reply).lower()
        if any(word in text for word in _OBJECTIONS):
            return self._weaker(wire)
        refused = tuple(name for name in _OPTIONAL if _refuses(text, name) and name not in self.without)
        if refused:
            return replace(self, without=(*self.without, *refused))
        return replace(self, native=False) if tools and self.native else None

    def _weaker(self, wire: Wire) -> Dialect | None:
        weaker = _WEAKER.get(wire)
        if weaker is None:
            return None
        # Two parallel calls may both be refused: only the form that was refused is given up, once.
        structure = weaker if wire is self.structure else self.structure
        return replace(self, structure=structure, compact=weaker if wire is self.compact else self.compact)


def _refuses(text: str, name: str) -> bool:
    """True for "unsupported parameter NAME", and not for a NAME that is merely too large."""
    if name == "max_tokens":
        return "max_completion_tokens" in text
    return name in text and any(word in text for word in _REFUSALS)


class DialectMemory(Protocol):
    """Keeps dialects between runs. Losing one costs a refused request, so nothing here may raise."""

    def load(self, key: str) -> Dialect | None:
        """What was found out about `key` (base URL and model), if it is not too old."""
        ...

    async def save(self, key: str, dialect: Dialect) -> None:
        """Keeps it."""
        ...


class NoDialectMemory:
    """Remembers nothing beyond the object that asked."""

    def load(self, key: str) -> Dialect | None:
        """Nothing."""
        return None

    async def save(self, key: str, dialect: Dialect) -> None:
        """Does nothing."""


_MOST_KEPT = 256
_OLDEST = timedelta(days=7)


class FileDialectMemory:
    """Dialects in one small JSON file under artoo's home; entries expire after a week, for servers get better.

    The file is a cache: unreadable, it counts as empty; unwritable, the run goes on without it.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._entries: dict[str, object] | None = None

    def load(self, key: str) -> Dialect | None:
        """See DialectMemory. The file is read at the first call."""
        if self._entries is None:
            self._entries = _read(self._path)
        return _dialect(self._entries.get(key), self._clock.now())

    async def save(self, key: str, dialect: Dialect) -> None:
        """See DialectMemory. Other processes' entries in the file stay."""
        entry: dict[str, object] = {**asdict(dialect), "at": self._clock.now().isoformat()}
        self._entries = await asyncio.to_thread(_merge, self._path, key, entry)


def _dialect(entry: object, now: datetime) -> Dialect | None:
    if not isinstance(entry, dict):
        return None
    fields = cast(dict[str, object], entry)
    try:
        if now - datetime.fromisoformat(str(fields["at"])) > _OLDEST:
            return None
        without = cast(list[str], fields["without"])
        return Dialect(
            Wire(str(fields["structure"])),
            Wire(str(fields["compact"])),
            tuple(name for name in without if name in _OPTIONAL),
            fields.get("native") is not False,
        )
    except (KeyError, TypeError, ValueError):
        return None


def _read(path: Path) -> dict[str, object]:
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return cast(dict[str, object], found) if isinstance(found, dict) else {}


def _merge(path: Path, key: str, entry: dict[str, object]) -> dict[str, object]:
    entries = _read(path)
    entries.pop(key, None)
    entries[key] = entry
    for oldest in list(entries)[: max(0, len(entries) - _MOST_KEPT)]:
        del entries[oldest]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, orjson.dumps(entries), sync=False)
    except OSError:
        return entries  # a cache that cannot be written costs one refused request in the next run
    return entries
