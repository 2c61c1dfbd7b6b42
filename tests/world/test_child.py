"""A program that was started, and whoever stops caring for it."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path

import pytest

from artoo.world.child import Child


def sleeping(*, fed: bool = False) -> Child:
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        return Child.started(("sleep", "60"), dict(os.environ), Path("/"), (), fed=fed, out=null, err=null)
    finally:
        os.close(null)


async def test_the_end_of_a_program_is_told() -> None:
    """Its code counts as subprocess counts: a signal is negative."""
    child = sleeping()
    child.kill()
    assert await child.wait() == -9
    child.close()


@pytest.mark.filterwarnings("error")
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
async def test_a_program_that_is_forgotten_before_its_end_leaves_no_zombie() -> None:
    """Whoever waited was cancelled twice: nobody warns, and the kernel's table is cleared all the same."""
    child = sleeping(fed=True)
    pid = child.pid
    child.kill()
    child.close()
    del child
    gc.collect()
    async with asyncio.timeout(20):
        while Path(f"/proc/{pid}").exists():  # noqa: ASYNC110 - the kernel sets no event
            await asyncio.sleep(0.01)
