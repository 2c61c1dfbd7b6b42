"""The job of the overhead benchmark is done by the whole runtime: its script of answers must not fall behind."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "overhead.py"


@pytest.fixture(scope="module")
def overhead() -> ModuleType:
    """The benchmark, which is a script and no module of a package."""
    spec = importlib.util.spec_from_file_location("overhead", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("parts", "calls"), [(0, 6), (3, 8)])
def test_the_runtime_does_the_benchmarks_job(overhead: ModuleType, parts: int, calls: int) -> None:
    """A chain and a fan-out end with an accept, in the calls that the other peers make."""
    with overhead.mock_server(1.0) as address:
        peer = overhead.Peer("artoo", Path(sys.executable), f"{address}/v1")
        try:
            overhead.served(address)
            assert peer.order(parts)["wall"] > 0
            assert overhead.served(address)["calls"] == calls
        finally:
            peer.close()
