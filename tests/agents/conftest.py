"""Tests of the books run on both engines."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from engines import Choice, Stores

from postgres_server import Server


@pytest.fixture(params=["embedded", "shared"])
def engine(request: pytest.FixtureRequest) -> Generator[str]:
    """The engine on which `open_books` opens."""
    if request.param == "embedded":
        yield "embedded"
        return
    server: Server = request.getfixturevalue("postgres")
    Choice.stores = Stores(server)
    try:
        yield "shared"
    finally:
        Choice.stores.drop()
        Choice.stores = None
