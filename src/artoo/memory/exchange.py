"""Export and import memory as JSON lines, with the limit of a line.

Each line is one megram. The lines are ordered by id, oldest first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram
from artoo.memory import codec, reading, tables
from artoo.store.query import Engine, Query

SLICE = 512
LONGEST_LINE = 1 << 20
_EVERY = f"{reading.MEGRAM} m.id > ? ORDER BY m.id LIMIT ?"


def exported(query: Query, after: str) -> tuple[list[bytes], str | None]:
    """Return a slice of the megrams as lines without line ends. Also return the id after which the next slice
    begins."""
    found = every(query, after)
    return [codec.encode_whole(each) for each in found], found[-1].id if len(found) == SLICE else None


def every(query: Query, after: str) -> list[Megram]:
    """Return the next slice of megrams after an id."""
    return reading.megrams(query.all(_EVERY, (after, SLICE)))


def imported(engine: Engine, lines: Iterable[bytes]) -> tuple[int, int]:
    """Store the megrams in `lines`. Return the numbers of those that were added and of those that were known.
    Idempotent.

    Raises MemoryStoreError that names the invalid line. The megrams in the lines before it are stored.
    """
    added = seen = 0
    batch: list[Megram] = []

    def store() -> None:
        nonlocal added, seen
        new = engine.write(lambda query: tables.add(query, batch)) if batch else 0
        added, seen = added + new, seen + len(batch) - new
        batch.clear()

    try:
        for megram in _parsed(lines):
            batch.append(megram)
            if len(batch) == SLICE:
                store()
    finally:
        store()
    return added, seen


def _parsed(lines: Iterable[bytes]) -> Iterator[Megram]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if len(line) > LONGEST_LINE:
            raise MemoryStoreError(f"Line {number} is longer than {LONGEST_LINE} bytes; that is no megram.")
        try:
            yield codec.decode(line)
        except codec.RecordDamaged as error:
            raise MemoryStoreError(
                f"Line {number} is no megram: {_reason(error)}. `artoo memory export` shows what a line must be."
            ) from error


def _reason(error: codec.RecordDamaged) -> str:
    """Describe in a few words why a line cannot be decoded."""
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return str(cause or error)
    first = cause.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])
