"""Memory's books over an LMDB file: the functions that read and change it, run in threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path

from artoo.contracts.memory import Megram, TLayerProposal
from artoo.contracts.tags import Pair
from artoo.memory import exchange, insight, reading, verify
from artoo.memory.environment import Environment, open_environment
from artoo.memory.maintenance import Maintenance
from artoo.ports.clock import Clock
from artoo.ports.memory_books import Explanation, Findings, Kind, Overview


class EmbeddedBooks:
    """Implements `ports.memory_books.MemoryBooks`. `close` gives the environment back."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    @classmethod
    def open(cls, directory: Path) -> EmbeddedBooks:
        """Opens the store in `directory` as it is. Raises MemoryStoreError when it is unusable."""
        return cls(open_environment(directory))

    async def overview(self, now: datetime) -> Overview:
        """See the port."""
        return await asyncio.to_thread(insight.overview, self.environment, now)

    async def explain(self, pair: Pair, now: datetime, *, shown: int = insight.SHOWN) -> Explanation:
        """See the port."""
        return await asyncio.to_thread(insight.explain, self.environment, pair, now, shown=shown)

    async def kinds(self) -> tuple[Kind, ...]:
        """See the port."""
        known = await asyncio.to_thread(
            self.environment.read, lambda transaction: reading.requests(transaction, insight.REQUESTS)
        )
        return insight.kinds_in(known)

    async def rename_kind(self, old: str, new: str) -> int:
        """See the port."""
        return await asyncio.to_thread(insight.rename_kind, self.environment, old, new)

    async def forget_pair(self, pair: Pair) -> int:
        """See the port."""
        return await asyncio.to_thread(insight.forget_pair, self.environment, pair)

    async def forget_one(self, megram_id: str) -> Megram | None:
        """See the port."""
        return await asyncio.to_thread(insight.forget_one, self.environment, megram_id)

    async def oppose(self, megram_id: str, why: str, *, new_id: str, at: datetime) -> Megram:
        """See the port."""
        return await asyncio.to_thread(insight.oppose, self.environment, megram_id, why, new_id=new_id, at=at)

    async def open_proposals(self) -> tuple[TLayerProposal, ...]:
        """See the port."""
        return await asyncio.to_thread(insight.open_proposals, self.environment)

    async def answer_proposal(self, proposal_id: str, *, accept: bool) -> TLayerProposal:
        """See the port."""
        return await asyncio.to_thread(insight.answer_proposal, self.environment, proposal_id, accept=accept)

    async def examine(self) -> Findings:
        """See the port."""
        return await asyncio.to_thread(verify.examine, self.environment)

    async def repair(self) -> None:
        """See the port."""
        await asyncio.to_thread(verify.repair, self.environment)

    async def exported(self) -> AsyncIterator[bytes]:
        """See the port."""
        lines = exchange.exported(self.environment)
        while slice_ := await asyncio.to_thread(_some, lines):
            for line in slice_:
                yield line

    async def imported(self, lines: Iterable[bytes]) -> tuple[int, int]:
        """See the port."""
        return await asyncio.to_thread(exchange.imported, self.environment, lines)

    def dreams(self, clock: Clock) -> Maintenance:
        """See the port."""
        return Maintenance(self.environment, clock)

    async def close(self) -> None:
        """See the port."""
        await asyncio.to_thread(self.environment.close)


def _some(lines: Iterator[bytes]) -> list[bytes]:
    return list(islice(lines, exchange.SLICE))
