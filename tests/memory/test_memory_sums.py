from __future__ import annotations

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
from artoo.memory import reading, tables, verify
from artoo.memory.engines import engine_at
from artoo.memory.signal import microseconds, moment, recomputed, signal_of
from artoo.store.query import Engine, Query

LEVELS: dict[str, StoredLevel] = {"M": Level.MEGRAM, "K": Level.KNOWLEDGE, "C": Level.COMMON_SENSE}
PAIRS = [Pair("tool:shell:find", "path:/tmp"), Pair("tool:glob", "env:local")]
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)

magnitudes = st.one_of(st.sampled_from([0.95, 0.9, 0.85, 0.3, 0.1]), st.floats(0, 1))
valences = st.one_of(st.just(0.0), st.floats(-1, 1))
decays = st.sampled_from([0.0, 0.05, 0.2, 0.5])
births = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


def made(number: int, pair: Pair, born: datetime, f: float, sigma: float, k: float, level: str = "M") -> Megram:
    """A megram, as anything may have written it."""
    return Megram(
        id=f"m{number:04d}",
        level=LEVELS[level],
        created_at=born,
        space=pair.space,
        entity=pair.entity,
        state=MegramState.ACCEPT,
        f=f,
        sigma=sigma,
        k=k,
    )


megrams = st.builds(
    made, st.just(0), st.just(PAIRS[0]), births, magnitudes, valences, decays, st.sampled_from("MKC")
)


def counted(entries: list[Megram], sign: int = 1, cells: tables.Cells | None = None) -> tables.Cells:
    """The cells of entries."""
    cells = tables.Cells() if cells is None else cells
    for each in entries:
        cells.count(tables.values(each), sign)
    return cells


@given(st.lists(megrams, max_size=20), st.randoms())
def test_order_does_not_matter(entries: list[Megram], random: object) -> None:
    """The same entries in any order give the same sums to the last digit."""
    shuffled = sorted(entries, key=lambda entry: hash((entry.model_dump_json(), str(random))))
    assert counted(entries) == counted(shuffled)


@given(st.lists(megrams, max_size=20), st.lists(megrams, max_size=20))
def test_removal_leaves_nothing(kept: list[Megram], passing: list[Megram]) -> None:
    """Adding entries and taking them away again leaves exactly the sums without them."""
    left = counted(list(reversed(passing)), -1, counted(kept + passing)).found
    wanted = counted(kept).found
    for key, cell in left.items():
        due = wanted.get(key, tables.Cell())
        assert (cell.entries, cell.attention, cell.decision) == (due.entries, due.attention, due.decision)


@given(births)
def test_moments_survive(when: datetime) -> None:
    """Time in microseconds is exact."""
    assert moment(microseconds(when)) == when


@dataclass
class Model:
    """The store's definition: a dict of megrams, and a clock that somebody keeps setting."""

    now: datetime = field(default_factory=lambda: datetime(2026, 3, 1, tzinfo=UTC))
    megrams: dict[str, Megram] = field(default_factory=dict[str, Megram])
    written: int = 0


steps = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 1), magnitudes, valences, decays, st.sampled_from(["M", "K", "C"])),
    st.tuples(st.sampled_from(["delete", "promote", "demote"]), st.integers(0, 20)),
    st.tuples(st.just("jump"), st.floats(-4000, 4000)),
)


def any_history_keeps_the_sums(history: list[tuple[object, ...]]) -> None:
    """After every step sums equal recomputation, and at the end the store agrees with itself."""
    with TemporaryDirectory() as folder:
        engine, model = engine_at(Path(folder)), Model()
        try:
            for step in history:
                change = apply(model, step)
                engine.write(change)
                compare(model, engine)
            found = engine.read(verify.examine)
            assert found.sound, found.examples
        finally:
            engine.close()


@settings(max_examples=15, deadline=None)
@given(st.lists(steps, min_size=1, max_size=20))
def test_any_history_keeps_the_sums(history: list[tuple[object, ...]]) -> None:
    """Any sequence of writes, deletes, promotions, demotions and clock jumps."""
    any_history_keeps_the_sums(history)


@pytest.mark.torture
@settings(max_examples=400, deadline=None)
@given(st.lists(steps, min_size=1, max_size=40))
def test_any_history_keeps_the_sums_at_length(history: list[tuple[object, ...]]) -> None:
    """The same with more, and longer ones."""
    any_history_keeps_the_sums(history)


def apply(model: Model, step: tuple[object, ...]) -> Callable[[Query], object]:
    """One step of the model, and the same for the store."""
    match step:
        case ("jump", float(days)):
            model.now = min(LATEST, max(EARLIEST, model.now + timedelta(days=days)))
        case ("write", int(which), float(f), float(sigma), float(k), str(level)):
            model.written += 1
            megram = made(model.written, PAIRS[which], model.now, f, sigma, k, level)
            model.megrams[megram.id] = megram
            return lambda query: tables.add(query, [megram])
        case (str(kind), int(number)):
            found = model.megrams.pop(f"m{number:04d}", None)
            if found is not None:
                return replacing(model, found, kind)
        case _:
            raise AssertionError(step)
    return lambda query: None


def replacing(model: Model, megram: Megram, kind: str) -> Callable[[Query], object]:
    """A megram goes; unless it is deleted, it comes back on another level, born now."""
    again: list[Megram] = []
    if kind != "delete":
        level = Level.COMMON_SENSE if kind == "promote" else Level.KNOWLEDGE
        moved = {"level": level, "k": 0.0 if kind == "promote" else 0.05, "created_at": model.now}
        again.append(megram.model_copy(update=moved))
        model.megrams[megram.id] = again[0]
    return lambda query: (tables.remove(query, [megram.id]), tables.add(query, again))


def compare(model: Model, engine: Engine) -> None:
    """Sums of the store against the definition, within 1e-9 of the attention."""
    now_us = microseconds(model.now)
    got = engine.read(lambda query: reading.sums(query, PAIRS, now_us))
    for pair, sums in zip(PAIRS, got, strict=True):
        exact: Sums = recomputed((signal_of(each) for each in model.megrams.values() if each.pair == pair), now_us)
        apart = (sums.attention - exact.attention, sums.decision - exact.decision, sums.judged - exact.judged)
        assert all(abs(each) <= 1e-9 * exact.attention + 1e-15 for each in apart)
