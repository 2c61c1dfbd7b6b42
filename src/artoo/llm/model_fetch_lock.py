"""One fetch of a model at a time, across processes. The lock goes with its process, however that ends."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

POLL_SECONDS = 0.2


@contextmanager
def try_lock(path: Path) -> Generator[bool]:
    """Takes the lock if it is free, without waiting; yields whether it did, and lets go of it at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


@asynccontextmanager
async def hold_lock(path: Path, waiting: Callable[[], None]) -> AsyncGenerator[None]:
    """Waits for the lock and holds it. `waiting` is called at every look that finds it taken."""
    while True:
        with try_lock(path) as taken:
            if taken:
                yield
                return
        waiting()
        await asyncio.sleep(POLL_SECONDS)
