"""What holds for every test."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from hypothesis import settings

from artoo.testing import forbid_real_models

# The suite is a gate: the same commit passes or fails the same way everywhere. `make torture` searches on.
settings.register_profile("gate", derandomize=True, database=None)
settings.register_profile("search", derandomize=False)
settings.load_profile("gate")


@pytest.fixture(autouse=True)
def no_real_models(request: pytest.FixtureRequest) -> Generator[None]:
    """Only tests marked `embedded` may reach a real model; the others fail with a clear error instead."""
    allowed = request.node.get_closest_marker("embedded") is not None  # pyright: ignore[reportUnknownMemberType]
    with forbid_real_models(allow=allowed):
        yield
