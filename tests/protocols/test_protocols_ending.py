"""How a server's process ends."""

from __future__ import annotations

import asyncio
import sys

_STUCK = """
import asyncio
from artoo.protocols import ending

async def stuck():
    print("here", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.Event().wait()

ending.LEAVE_SECONDS = 0.1
asyncio.run(ending.until_asked_to_end(stuck()))
"""


async def test_an_end_that_was_asked_for_comes() -> None:
    """A server whose end waits for something that never comes ends all the same."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _STUCK, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"here\n"
    process.terminate()
    async with asyncio.timeout(60):
        assert await process.wait() == 1
