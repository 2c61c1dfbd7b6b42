"""Thousands of tasks in one process: what it holds stays flat."""

from __future__ import annotations

import pytest
from scenario import World
from soak import Held, left_over, soak

MEMORY = 16 * 2**20
"""Bytes by which the process's own memory may grow from the middle to the end: bounded caches that still fill, and
arenas that the allocator takes a megabyte at a time."""
UNDER_WAY = 1_000
"""Objects by which two looks may differ though nothing is kept: messages that wait for the log or the Auditor, and
what tasks that are just running hold. A leak of some objects a task shows in the short form, of one in the long."""
COME_AND_GO = 6
"""Descriptors, worker threads of a pool and the keepers of a process come and go; a leak grows by one a task."""


def assert_flat(seen: list[Held]) -> None:
    """From the middle to the end nothing grows with the tasks, but for the noise that is named above.

    How many objects are under way goes up and down, so the lowest of the last looks is held against the highest of
    the first.
    """
    half = seen[len(seen) // 2 - 1 :]
    first, last = half[0], half[-1]
    report = "\n".join(each.line() for each in seen)
    tasks = last.tasks - first.tasks
    early, late = half[: len(half) // 2], half[len(half) // 2 :]
    assert min(each.objects for each in late) - max(each.objects for each in early) < tasks + UNDER_WAY, report
    assert last.memory - first.memory <= MEMORY, report
    assert max(each.descriptors for each in half) <= first.descriptors + COME_AND_GO, report
    assert max(each.coroutines for each in half) <= first.coroutines + COME_AND_GO, report
    assert max(each.threads for each in half) <= first.threads + COME_AND_GO, report


@pytest.mark.torture
async def test_five_thousand_tasks_leave_the_process_as_it_was(world: World) -> None:
    """The same over 5,000 tasks; the figures are printed."""
    seen = await soak(world, 5_000, looks=20)
    print("\n".join(each.line() for each in seen))
    assert_flat(seen)
    assert left_over(world.config()) == []
