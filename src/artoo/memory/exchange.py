"""Memory as JSON lines: one megram a line, oldest id first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from pydantic import ValidationError

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import Megram
from artoo.memory import codec, keys, reading
from artoo.memory.environment import Environment, Transaction
from artoo.memory.ledger import Ledger

SLICE = 512
LONGEST_LINE = 1 << 20


def exported(environment: Environment) -> Iterator[bytes]:
    """Every stored megram as one line of JSON (without the newline), in slices, so that no lock is held."""
    start: bytes | None = b"m|"
    while start is not None:
        listed = environment.read(lambda transaction, at=start: _slice(transaction, at))
        for key, value, recalled in listed:
            yield codec.encode_whole(codec.with_recall(codec.decode(value), recalled))
            start = key + b"\0"
        if len(listed) < SLICE:
            start = None


def imported(environment: Environment, lines: Iterable[bytes]) -> tuple[int, int]:
    """Stores the megrams of `lines`: (added, known already). Importing twice adds nothing.

    Raises MemoryStoreError naming the line that is no megram; what came before it is stored.
    """

    def add(megrams: list[Megram]) -> int:
        return environment.write(lambda transaction: _add_all(transaction, megrams))

    return stored(lines, add)


def stored(lines: Iterable[bytes], add: Callable[[list[Megram]], int]) -> tuple[int, int]:
    """The megrams of `lines` handed to `add` in batches, which says how many were new: (added, known already)."""
    added = seen = 0
    for batch in _batches(_parsed(lines)):
        new = add(batch)
        added += new
        seen += len(batch) - new
    return added, seen


def _batches(megrams: Iterator[Megram]) -> Iterator[list[Megram]]:
    batch: list[Megram] = []
    failure: MemoryStoreError | None = None
    while failure is None:
        try:
            megram = next(megrams, None)
        except MemoryStoreError as error:
            megram, failure = None, error
        if megram is not None:
            batch.append(megram)
        if batch and (megram is None or len(batch) == SLICE):
            yield batch
            batch = []
        if megram is None:
            break
    if failure is not None:
        raise failure


def _slice(transaction: Transaction, start: bytes) -> list[tuple[bytes, bytes, bytes | None]]:
    listed = islice(reading.items_under(transaction, b"m|", start), SLICE)
    return [(key, value, transaction.get(keys.recalled(key[2:].decode()))) for key, value in listed]


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
    """What is wrong with the line, in a few words."""
    cause = error.__cause__
    if not isinstance(cause, ValidationError):
        return str(cause or error)
    first = cause.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def _add_all(transaction: Transaction, megrams: Iterable[Megram]) -> int:
    ledger = Ledger(transaction)
    added = sum(ledger.add(megram) for megram in megrams)
    ledger.finish()
    return added
