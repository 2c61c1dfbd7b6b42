"""Everything that changes the store, inside one write transaction: record, indexes and sums move together."""

from __future__ import annotations

from datetime import datetime

from artoo.contracts.memory import Megram
from artoo.memory import codec, keys
from artoo.memory.accumulators import Row
from artoo.memory.accumulators import decode as decode_row
from artoo.memory.accumulators import encode as encode_row
from artoo.memory.environment import Transaction
from artoo.memory.signal import pack, signal_of, unpack


class Ledger:
    """Collects the changes of one transaction; each touched pair's sums are read and written once.

    Call `finish` before the transaction commits.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows: dict[bytes, Row] = {}

    def get(self, megram_id: str) -> Megram | None:
        """The stored megram, or None."""
        raw = self._transaction.get(keys.record(megram_id))
        if raw is None:
            return None
        return codec.with_recall(codec.decode(raw), self._transaction.get(keys.recalled(megram_id)))

    def add(self, megram: Megram) -> bool:
        """Stores a megram; False when its id is there already (the store keeps the first)."""
        put = self._transaction.put
        if not put(keys.record(megram.id), codec.encode(megram), overwrite=False):
            return False
        part = keys.tags_part(megram.space, megram.entity)
        self._index(megram, part)
        if megram.last_recalled_at is not None:
            self.touch(megram.id, megram.last_recalled_at)
        origin = megram.origin
        if origin.task_id:
            put(keys.taught(origin.task_id, megram.id), b"")
        if origin.intent and megram.sigma > 0 and not megram.is_rule:
            put(keys.worked(origin.intent, part), b"")
        return True

    def remove(self, megram_id: str) -> Megram | None:
        """Deletes a megram and everything that points to it; None when there is none."""
        megram = self.get(megram_id)
        if megram is None:
            return None
        self._unindex(megram)
        delete = self._transaction.delete
        delete(keys.record(megram_id))
        delete(keys.recalled(megram_id))
        if megram.origin.task_id:
            delete(keys.taught(megram.origin.task_id, megram_id))
        return megram

    def replace(self, megram: Megram) -> bool:
        """Puts a megram in the place of the one with its id and pair; False when that is gone."""
        old = self.get(megram.id)
        if old is None or old.pair != megram.pair:
            return False
        self._unindex(old)
        self._transaction.put(keys.record(megram.id), codec.encode(megram))
        self._index(megram, keys.pair_part(megram.pair))
        return True

    def touch(self, megram_id: str, at: datetime) -> None:
        """Restarts a megram's clock."""
        self._transaction.put(keys.recalled(megram_id), at.isoformat().encode())

    def finish(self) -> None:
        """Writes the sums of all touched pairs."""
        for part, row in self._rows.items():
            if row.cells:
                self._transaction.put(keys.sums(part), encode_row(row))
            else:
                self._transaction.delete(keys.sums(part))
        self._rows.clear()

    def _index(self, megram: Megram, part: bytes) -> None:
        put = self._transaction.put
        signal = signal_of(megram)
        put(keys.evidence(part, megram.id), pack(signal))
        put(keys.level(megram.level, megram.id), b"")
        if signal.counts:
            self._row(part).add(signal)
        else:
            put(keys.rule(part, megram.id), b"")

    def _unindex(self, megram: Megram) -> None:
        delete = self._transaction.delete
        part = keys.pair_part(megram.pair)
        key = keys.evidence(part, megram.id)
        raw = self._transaction.get(key)
        if raw is not None:
            self._row(part).remove(unpack(raw))
            delete(key)
        delete(keys.level(megram.level.value, megram.id))
        if megram.is_rule:
            delete(keys.rule(part, megram.id))

    def _row(self, part: bytes) -> Row:
        row = self._rows.get(part)
        if row is None:
            raw = self._transaction.get(keys.sums(part))
            row = self._rows[part] = Row() if raw is None else decode_row(raw)
        return row
