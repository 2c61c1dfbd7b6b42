"""Places for stores that live no longer than their cell."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_IN_MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory. A store waits for its disk at every transaction: real time in which no virtual
time passes."""


@contextmanager
def scratch() -> Generator[Path]:
    """A folder that is gone afterwards: in memory where the system has that, else where temporary files are."""
    within = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="artoo-lab-", dir=within) as place:
        yield Path(place)
