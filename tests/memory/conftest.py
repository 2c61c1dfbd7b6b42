"""A store on disk, a clock that stands still, and megrams to put in."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from artoo.contracts.memory import Level, Megram, MegramState, Origin, StoredLevel
from artoo.contracts.tags import Pair
from artoo.control.potentials import QUANTISATION
from artoo.memory.service import SharedMemory
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds
from memory_engines import ENGINES, opened_on

Make = Callable[..., Megram]


@pytest.fixture
def clock() -> FakeClock:
    """Time stands still until a test moves it."""
    return FakeClock(auto_advance=True)


@pytest.fixture
def ids() -> SequentialIds:
    """Predictable ids."""
    return SequentialIds()


@pytest.fixture
async def embedded(tmp_path: Path, clock: FakeClock, ids: SequentialIds) -> AsyncGenerator[SharedMemory]:
    """The store of a home."""
    shared = SharedMemory.open(tmp_path / "memory", clock, ids)
    yield shared
    await shared.close()


@pytest.fixture(params=ENGINES)
async def memory(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock, ids: SequentialIds
) -> AsyncGenerator[SharedMemory]:
    """An empty store, on each engine."""
    opened = opened_on(str(request.param), request, tmp_path / "memory", clock, ids)
    yield opened
    await opened.close()


@pytest.fixture
def make(clock: FakeClock, ids: SequentialIds) -> Make:
    """Builds a megram as R7 would write it now."""

    def build(
        pair: Pair,
        state: str = "accept",
        *,
        level: StoredLevel = Level.MEGRAM,
        content: str = "",
        sigma: float | None = None,
        k: float | None = None,
        origin: Origin | None = None,
    ) -> Megram:
        stimulus = QUANTISATION[state]
        return Megram(
            id=ids.new(),
            level=level,
            created_at=clock.now(),
            space=pair.space,
            entity=pair.entity,
            content=content,
            state=MegramState(state),
            f=stimulus.f,
            sigma=stimulus.sigma if sigma is None else sigma,
            k=(0.0 if level is Level.COMMON_SENSE else stimulus.k) if k is None else k,
            origin=origin if origin is not None else Origin(),
        )

    return build
