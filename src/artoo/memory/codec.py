"""Records as bytes: one JSON object each."""

from __future__ import annotations

from datetime import datetime

import orjson
from pydantic import TypeAdapter, ValidationError

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram


class RecordDamaged(MemoryStoreError):
    """One entry of the store cannot be read; the others can."""


_ADAPTER = TypeAdapter(Megram)


def encode(megram: Megram) -> bytes:
    """A megram as compact JSON without the time of its last recall, which has a key of its own.

    By hand, because the writer does this for every megram and pydantic takes four times as long.
    """
    origin = megram.origin
    fields: dict[str, object] = {
        "id": megram.id,
        "level": megram.level,
        "created_at": megram.created_at,
        "space": megram.space,
        "entity": megram.entity,
        "content": megram.content,
        "state": megram.state,
        "f": megram.f,
        "sigma": megram.sigma,
        "k": megram.k,
    }
    if origin.task_id or origin.intent or origin.sources or origin.hypothesis:
        fields["origin"] = origin.model_dump(mode="json", exclude_defaults=True)
    return orjson.dumps(fields)


def encode_whole(megram: Megram) -> bytes:
    """A megram as JSON with every field, for people and other programs."""
    return _ADAPTER.dump_json(megram)


def decode(raw: bytes) -> Megram:
    """The inverse of either. Raises RecordDamaged naming what does not fit."""
    try:
        return _ADAPTER.validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the record"
        raise RecordDamaged(
            f"A memory record cannot be read ({where}: {first['msg']}). Run `artoo memory verify`."
        ) from error


def with_recall(megram: Megram, recalled_at: bytes | None) -> Megram:
    """The megram with the time that `r|id` holds for it."""
    if recalled_at is None:
        return megram
    return megram.model_copy(update={"last_recalled_at": datetime.fromisoformat(recalled_at.decode())})
