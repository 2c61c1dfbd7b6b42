"""Waiting for a view that another process holds for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

from artoo.world.view_place import ViewInUse

PATIENCE_SECONDS = 5.0

T = TypeVar("T")


@contextmanager
def patiently(opening: Callable[[], AbstractContextManager[T]]) -> Generator[T]:
    """A view to oneself: whoever only looks at it, or at all views of a home, lets go of it soon. Blocking.

    For those who have to have it now: a task that settles, a submission. Raises ViewInUse when a process keeps it.
    """
    with ExitStack() as held:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                given = held.enter_context(opening())
                break
            except ViewInUse:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        yield given
