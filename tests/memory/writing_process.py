"""A process that writes megrams until it is done or killed: `writing_process.py DIRECTORY NAME COUNT START`.

Prints the number written after each flush, so that the test knows what has been acknowledged.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

from artoo.contracts.memory import Megram, MegramState
from artoo.memory.service import SharedMemory
from artoo.runtime.app.system import SystemClock, UuidIds

FLUSH_EVERY = 250
STATES = (
    (MegramState.ACCEPT, 0.9, 1.0, 0.05),
    (MegramState.ABANDON, 0.95, -1.0, 0.05),
    (MegramState.REFINE, 0.1, 0.5, 0.5),
)


async def main(directory: Path, name: str, count: int, start: int) -> None:
    """Writes `count` megrams with predictable ids, from number `start` on."""
    memory = SharedMemory.open(directory, SystemClock(), UuidIds())
    for number in range(start, count):
        state, f, sigma, k = STATES[number % 3]
        memory.write(
            Megram(
                id=f"{name}-{number:07d}",
                created_at=datetime.now(UTC),
                space=f"tool:t{number % 5}",
                entity="env:local",
                content="what happened",
                state=state,
                f=f,
                sigma=sigma,
                k=k,
            )
        )
        if number % FLUSH_EVERY == FLUSH_EVERY - 1:
            await memory.flush()
            print(number + 1, flush=True)
    await memory.close()
    print(count, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
