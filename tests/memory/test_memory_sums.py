from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artoo.contracts.memory import Level, Megram, MegramState, StoredLevel
from artoo.contracts.tags import Pair
from artoo.control.potentials import Sums
from artoo.memory import keys, reading
from artoo.memory.accumulators import Row, decode, encode, recomputed
from artoo.memory.environment import Environment, Transaction, open_environment
from artoo.memory.exact import ExactSum
from artoo.memory.ledger import Ledger
from artoo.memory.signal import DAY_US, Signal, microseconds, moment, pack, unpack
from artoo.memory.verify import examine

LEVELS: dict[str, StoredLevel] = {
    "M": Level.MEGRAM,
    "K": Level.KNOWLEDGE,
    "C": Level.COMMON_SENSE,
}
PAIRS = [Pair("tool:shell:find", "path:/tmp"), Pair("tool:glob", "env:local")]
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)

magnitudes = st.one_of(st.sampled_from([0.95, 0.9, 0.85, 0.3, 0.1]), st.floats(0, 1))
decays = st.sampled_from([0.0, 0.05, 0.2, 0.5])
births = st.one_of(
    st.integers(1_760_000_000, 1_775_000_000).map(lambda second: second * 1_000_000),
    st.integers(microseconds(EARLIEST), microseconds(LATEST)),
)
signals = st.builds(
    Signal,
    st.sampled_from(["M", "M", "K", "C"]),
    births,
    magnitudes,
    st.one_of(st.just(0.0), st.floats(-1, 1)),
    decays,
    st.booleans(),
)


def close(got: Sums, exact: Sums) -> bool:
    """Within 1e-9 of the attention."""
    bound = 1e-9 * exact.attention + 1e-300
    apart = (got.attention - exact.attention, got.decision - exact.decision, got.judged - exact.judged)
    return all(abs(each) <= bound for each in apart)


@given(st.lists(signals, max_size=30), st.integers(0, 4000))
def test_sums_equal_recomputation(entries: list[Signal], days_later: int) -> None:
    """Seen from after its last entry, a row gives the sums that the definition gives, whatever the dates."""
    row = Row()
    for entry in entries:
        row.add(entry)
    now_us = max([entry.born_us for entry in entries], default=0) + days_later * DAY_US
    assert close(row.at(now_us), recomputed(entries, now_us))


@given(st.lists(signals, max_size=20), st.randoms())
def test_order_does_not_matter(entries: list[Signal], random: object) -> None:
    """The same entries in any order give the same bytes."""
    shuffled = sorted(entries, key=lambda entry: hash((entry, str(random))))
    assert encode(_row(entries)) == encode(_row(shuffled))


@given(st.lists(signals, max_size=20), st.lists(signals, max_size=20))
def test_removal_leaves_nothing(kept: list[Signal], passing: list[Signal]) -> None:
    """Adding entries and taking them away again leaves exactly the row without them."""
    row = _row(kept + passing)
    for entry in reversed(passing):
        row.remove(entry)
    assert row.agrees_with(_row(kept))


@given(st.lists(signals, max_size=10))
def test_rows_survive_the_disk(entries: list[Signal]) -> None:
    """A row is read back as it was written."""
    row = _row(entries)
    again = decode(encode(row))
    assert again.agrees_with(row)
    assert again.latest_us == row.latest_us


@given(signals)
def test_signals_survive_the_disk(signal: Signal) -> None:
    """A packed signal is read back as it was."""
    assert unpack(pack(signal)) == signal


@given(st.lists(st.floats(-1e300, 1e300, allow_nan=False), max_size=20))
def test_exact_sums_are_exact(values: list[float]) -> None:
    """Adding floats and then their negatives ends at exactly zero."""
    total = ExactSum()
    for value in values:
        total.add(value)
    for value in values:
        total.add(-value)
    assert total.reduced() == (0, 0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_exact_sums_are_fsum(values: list[float]) -> None:
    """Read as a float, an exact sum is what math.fsum gives to the last place; equal sums have one form."""
    total, backwards = ExactSum(), ExactSum()
    for value in values:
        total.add(value)
    for value in reversed(values):
        backwards.add(value)
    assert total.scaled(1.0) == pytest.approx(math.fsum(values), rel=1e-15, abs=1e-320)
    assert total.reduced() == backwards.reduced()


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_moments_survive(when: datetime) -> None:
    """Time in microseconds is exact, before 1970 as well."""
    assert moment(microseconds(when)) == when


def _row(entries: list[Signal]) -> Row:
    row = Row()
    for entry in entries:
        row.add(entry)
    return row


@dataclass
class Model:
    """The store's definition: a dict of megrams, and a clock that somebody keeps setting."""

    now: datetime = field(default_factory=lambda: datetime(2026, 3, 1, tzinfo=UTC))
    megrams: dict[str, Megram] = field(default_factory=dict[str, Megram])
    written: int = 0


steps = st.one_of(
    st.tuples(
        st.just("write"), st.integers(0, 1), magnitudes, st.floats(-1, 1), decays, st.sampled_from(["M", "K", "C"])
    ),
    st.tuples(st.just("delete"), st.integers(0, 50)),
    st.tuples(st.just("promote"), st.integers(0, 50)),
    st.tuples(st.just("demote"), st.integers(0, 50)),
    st.tuples(st.just("jump"), st.floats(-4000, 4000)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, min_size=1, max_size=40))
def test_any_history_keeps_the_sums(history: list[tuple[object, ...]]) -> None:
    """After any sequence of writes, deletes, promotions, demotions and clock jumps, sums equal recomputation."""
    with TemporaryDirectory() as folder:
        environment = open_environment(Path(folder), map_bytes=1 << 20)
        try:
            model = Model()
            for step in history:
                _apply(model, environment, step)
                _compare(model, environment)
            assert examine(environment).sound
        finally:
            environment.close()


def _apply(model: Model, environment: Environment, step: tuple[object, ...]) -> None:
    match step:
        case ("jump", float(days)):
            model.now = min(LATEST, max(EARLIEST, model.now + timedelta(days=days)))
        case ("write", int(which), float(f), float(sigma), float(k), str(level)):
            model.written += 1
            pair = PAIRS[which]
            megram = Megram(
                id=f"m{model.written:04d}",
                level=LEVELS[level],
                created_at=model.now,
                space=pair.space,
                entity=pair.entity,
                state=MegramState.ACCEPT,
                f=f,
                sigma=sigma,
                k=k,
            )
            model.megrams[megram.id] = megram
            _change(environment, lambda ledger: ledger.add(megram))
        case (str(kind), int(number)):
            megram = model.megrams.get(f"m{number:04d}")
            if megram is None:
                return
            if kind == "delete":
                del model.megrams[megram.id]
                _change(environment, lambda ledger: ledger.remove(megram.id))
                return
            level = Level.COMMON_SENSE if kind == "promote" else Level.KNOWLEDGE
            k = 0.0 if kind == "promote" else 0.05
            moved = megram.model_copy(update={"level": level, "k": k, "created_at": model.now})
            model.megrams[moved.id] = moved
            _change(environment, lambda ledger: ledger.replace(moved))
        case _:
            raise AssertionError(step)


def _change(environment: Environment, change: Callable[[Ledger], object]) -> None:
    def work(transaction: Transaction) -> None:
        ledger = Ledger(transaction)
        change(ledger)
        ledger.finish()

    environment.write(work)


def _compare(model: Model, environment: Environment) -> None:
    now_us = microseconds(model.now)
    for pair in PAIRS:
        expected = [
            Signal("M", microseconds(megram.created_at), megram.f, megram.sigma, megram.k, derived=False)
            for megram in model.megrams.values()
            if megram.pair == pair and not megram.is_rule
        ]
        part = keys.pair_part(pair)
        got = environment.read(lambda transaction, part=part: reading.sums(transaction, part, now_us))
        assert close(got, recomputed(expected, now_us))
