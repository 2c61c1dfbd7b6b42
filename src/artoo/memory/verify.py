"""Does the store agree with itself? The records are the truth; indexes and sums can be rebuilt from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, islice

from artoo.memory import codec, keys, reading
from artoo.memory.accumulators import Row
from artoo.memory.accumulators import decode as decode_row
from artoo.memory.accumulators import encode as encode_row
from artoo.memory.codec import RecordDamaged
from artoo.memory.environment import Environment, Transaction
from artoo.memory.signal import pack, signal_of, unpack
from artoo.ports.memory_books import Findings

SLICE = 512
_Mend = Callable[[Transaction, bytes, bytes], None]
_FORMAT_MARK, _FORMAT = "format", b"2"
_INDEXES = (b"x|", b"l|", b"r|", b"c|", b"t|")


def examine(environment: Environment) -> Findings:
    """Recomputes everything from the records in one snapshot and compares. Changes nothing."""
    return environment.read(_examined)


def upgrade(environment: Environment) -> None:
    """Brings the indexes and sums of a store that an earlier artoo wrote to today's format. Idempotent."""
    if environment.read(lambda transaction: transaction.get(keys.mark(_FORMAT_MARK))) == _FORMAT:
        return
    repair(environment)
    environment.write(lambda transaction: transaction.put(keys.mark(_FORMAT_MARK), _FORMAT))


def repair(environment: Environment) -> None:
    """Sets unreadable records aside (`q|id`), rebuilds indexes and sums. Safe while others write."""
    _in_slices(environment, b"m|", _mend_record)
    for prefix in _INDEXES:
        _in_slices(environment, prefix, _drop_stray)
    _in_slices(environment, b"a|", _drop_empty_sums)
    after: bytes | None = b"x|"
    while after is not None:
        after = environment.write(lambda transaction, start=after: _rebuild_next(transaction, start))


def _examined(transaction: Transaction) -> Findings:
    findings = Findings()
    for key, value in reading.items_under(transaction, b"m|"):
        findings.records += 1
        try:
            wanted = _index_entries(value)
        except RecordDamaged as error:
            findings.unreadable += 1
            findings.note(f"record {key[2:].decode()}: {error}")
            continue
        for entry, content in wanted:
            if transaction.get(entry) != content:
                findings.missing_index += 1
                findings.note(f"record {key[2:].decode()}: index entry {entry[:2].decode()} is missing or wrong")
    for prefix in _INDEXES:
        for key in reading.keys_under(transaction, prefix):
            if not _belongs(transaction, key):
                findings.stray_index += 1
                findings.note(f"index entry {key[:80]!r} belongs to no record")
    _compare_sums(transaction, findings)
    return findings


def _compare_sums(transaction: Transaction, findings: Findings) -> None:
    seen = 0
    for part, row in _recomputed_rows(transaction, b"x|"):
        stored = transaction.get(keys.sums(part))
        findings.pairs += 1
        seen += stored is not None
        if not _agrees(stored, row):
            findings.wrong_sums += 1
            findings.note(f"sums of {part[:80]!r} do not match its records")
    stored_rows = sum(1 for _ in reading.keys_under(transaction, b"a|"))
    if stored_rows > seen:
        findings.wrong_sums += stored_rows - seen
        findings.note(f"{stored_rows - seen} pairs have sums but no records")


def _recomputed_rows(transaction: Transaction, start: bytes) -> Iterator[tuple[bytes, Row | None]]:
    entries = reading.items_under(transaction, b"x|", start)
    for part, group in groupby(entries, key=lambda item: keys.split_last(item[0])[0]):
        yield part, _row_of(value for _, value in group)


def _row_of(values: Iterable[bytes]) -> Row | None:
    row = Row()
    try:
        for value in values:
            row.add(unpack(value))
    except RecordDamaged:
        return None
    return row


def _agrees(stored: bytes | None, row: Row | None) -> bool:
    if row is None:
        return False
    if stored is None:
        return not row.cells
    try:
        kept = decode_row(stored)
    except RecordDamaged:
        return False
    return kept.agrees_with(row) and kept.latest_us >= row.latest_us


def _index_entries(raw: bytes) -> list[tuple[bytes, bytes]]:
    megram = codec.decode(raw)
    part = keys.pair_part(megram.pair)
    entries = [
        (keys.evidence(part, megram.id), pack(signal_of(megram))),
        (keys.level(megram.level.value, megram.id), b""),
    ]
    if megram.is_rule:
        entries.append((keys.rule(part, megram.id), b""))
    if megram.origin.task_id:
        entries.append((keys.taught(megram.origin.task_id, megram.id), b""))
    return entries


def _belongs(transaction: Transaction, key: bytes) -> bool:
    _, megram_id = keys.split_last(key)
    raw = transaction.get(keys.record(megram_id))
    if raw is None:
        return False
    if key.startswith(b"r|"):
        return True
    try:
        return key in {entry for entry, _ in _index_entries(raw)}
    except RecordDamaged:
        return True


def _in_slices(environment: Environment, prefix: bytes, mend: _Mend) -> None:
    start: bytes | None = prefix
    while start is not None:
        start = environment.write(lambda transaction, at=start: _one_slice(transaction, prefix, at, mend))


def _one_slice(transaction: Transaction, prefix: bytes, start: bytes, mend: _Mend) -> bytes | None:
    listed = list(islice(reading.items_under(transaction, prefix, start), SLICE))
    for key, value in listed:
        mend(transaction, key, value)
    return listed[-1][0] + b"\0" if len(listed) == SLICE else None


def _mend_record(transaction: Transaction, key: bytes, value: bytes) -> None:
    try:
        wanted = _index_entries(value)
    except RecordDamaged:
        transaction.put(b"q|" + key[2:], value)
        transaction.delete(key)
        return
    for entry, content in wanted:
        if transaction.get(entry) != content:
            transaction.put(entry, content)


def _drop_stray(transaction: Transaction, key: bytes, value: bytes) -> None:
    if not _belongs(transaction, key):
        transaction.delete(key)


def _drop_empty_sums(transaction: Transaction, key: bytes, value: bytes) -> None:
    prefix = b"x|" + key[2:] + b"|"
    if next(reading.keys_under(transaction, prefix), None) is None:
        transaction.delete(key)


def _rebuild_next(transaction: Transaction, start: bytes) -> bytes | None:
    found = next(_recomputed_rows(transaction, start), None)
    if found is None:
        return None
    part, row = found
    if row is not None and row.cells:
        transaction.put(keys.sums(part), encode_row(row))
    else:
        transaction.delete(keys.sums(part))
    return b"x|" + part + b"|\xff"
