"""Encode megrams and records as JSON text, and the errors for damaged or unreachable stores."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram
from artoo.memory.signal import moment
from artoo.store.query import Failure


class RecordDamaged(MemoryStoreError):
    """Raised if one entry of the store cannot be read, or cannot be stored. Other entries are not affected."""


class MemoryAway(MemoryStoreError):
    """Raised if the store cannot be reached or used at this time. The writes that are pending are not stored
    yet."""


def failed(message: str, kind: Failure) -> MemoryStoreError:
    """Return the exception that stands for a failure of an engine."""
    if kind == "data":
        return RecordDamaged(message)
    return (MemoryStoreError if kind in ("full", "other") else MemoryAway)(message)


_ADAPTER = TypeAdapter(Megram)


def encode(megram: Megram) -> str:
    """Return a megram as compact JSON. The time of its last recall is left out, because a table of its own contains
    it."""
    return megram.model_dump_json(exclude={"last_recalled_at"}, exclude_defaults=True)


def encode_whole(megram: Megram) -> bytes:
    """Return a megram as JSON with all fields, for people and other programs."""
    return _ADAPTER.dump_json(megram)


def decode(raw: str | bytes) -> Megram:
    """Parse a megram from the JSON of `encode` or `encode_whole`. Raises RecordDamaged that names the invalid
    field."""
    try:
        return _ADAPTER.validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the record"
        raise RecordDamaged(
            f"A memory record cannot be read ({where}: {first['msg']}). Run `artoo memory verify`."
        ) from error


def with_recall(megram: Megram, recalled_us: int | None) -> Megram:
    """Return the megram with the time of its last recall from the table `memory_recalled`."""
    return megram if recalled_us is None else megram.model_copy(update={"last_recalled_at": moment(recalled_us)})
