"""Make the store of an earlier version: `PYTHONPATH=src python make_lmdb_home.py DIRECTORY`, run in that version.

What it holds is always the same: evidence of two kinds of request, a rule that was recalled, feedback, a guess, and
the Dreamer's report, mark and proposal. `lmdb_home/` was made by the last version whose memory was an LMDB file.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
from datetime import timedelta
from pathlib import Path

from artoo.contracts.memory import DreamReport, Level, Megram, MegramState, Origin, StoredLevel, TLayerProposal
from artoo.contracts.tags import Pair
from artoo.memory.service import SharedMemory
from artoo.testing.clock import FakeClock
from artoo.testing.ids import SequentialIds

ENTRIES = (
    *((Pair("tool:glob", entity), "accept", 0.9, 1.0) for entity in ("intent:find_all_pdf", "env:local") * 4),
    *((Pair("tool:curl", entity), "change_approach", 0.85, -1.0) for entity in ("intent:count_the_words",) * 3),
    (Pair("intent:find_all_pdf", "env:local"), "accept", 0.9, 1.0),
    (Pair("intent:count_the_words", "env:local"), "abandon", 0.95, -1.0),
    (Pair("tool:shell:grep", "path:/home/me/" + "长" * 200), "refine", 0.1, 0.5),
)


async def made(directory: Path) -> None:
    """Write everything, and close the store as a process does that ends."""
    clock, ids = FakeClock(), SequentialIds()
    memory = SharedMemory.open(directory, clock, ids)

    def entry(pair: Pair, state: str, f: float, sigma: float, level: StoredLevel = Level.MEGRAM) -> Megram:
        intent = pair.entity.removeprefix("intent:") if pair.entity.startswith("intent:") else None
        return Megram(
            id=ids.new(),
            level=level,
            created_at=clock.now(),
            space=pair.space,
            entity=pair.entity,
            content=f"{state} of {pair.space}",
            state=MegramState(state),
            f=f,
            sigma=sigma,
            k=0.0 if level is Level.COMMON_SENSE else 0.05,
            origin=Origin(task_id="t1", intent=intent),
        )

    for pair, state, f, sigma in ENTRIES:
        memory.write(entry(pair, state, f, sigma))
        clock.advance(3_600)
    memory.write(entry(Pair("tool:curl", "env:local"), "consolidated", 1.0, -1.0, Level.COMMON_SENSE))
    await memory.flush()
    (rule,) = await memory.query_c("tool:curl", "env:local")
    memory.record_negative_feedback(rule.id, "it is fine now")
    await memory.flush()
    dreams = memory.dreams()
    async with dreams.turn():
        await dreams.set_mark("cursor:forget", "12")
        at = clock.now() + timedelta(hours=1)
        await dreams.keep_report(DreamReport(dream_id="d1", started_at=at, examined=7))
        await dreams.propose(TLayerProposal(id="p1", proposed_at=at, text="Look before you write."), "proposed:r")
    with (directory / "exported.jsonl").open("wb") as file:
        async for line in memory.books.exported():
            file.write(line + b"\n")
    await memory.close()


if __name__ == "__main__":
    place = Path(sys.argv[1])
    asyncio.run(made(place))
    data = place / "data.mdb"
    (place / "data.mdb.gz").write_bytes(gzip.compress(data.read_bytes(), mtime=0))
