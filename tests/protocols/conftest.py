"""A place of its own for every test of a protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hosting import Place, placed


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[Place]:
    """See `placed`."""
    async with placed(tmp_path) as found:
        yield found
