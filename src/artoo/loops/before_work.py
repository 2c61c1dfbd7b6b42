"""Run the checks that show the files before the work, and delay the first change until they have ended.

A check confirms a criterion only if it can distinguish finished work from no work. A fast model could otherwise
change a file before its check has run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from artoo.contracts.criteria import Criterion
from artoo.ports.evidence import EvidenceSource
from artoo.verdicts.judging import held_before

# Longest delay of a change. A check that takes longer (a long test suite) runs on while the work begins.
_LONGEST_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class BeforeWork:
    """The checks of one task that are running before its work."""

    _running: set[asyncio.Future[frozenset[str]]] = field(default_factory=set[asyncio.Future[frozenset[str]]])

    async def held(self, criteria: Sequence[Criterion], source: EvidenceSource) -> frozenset[str]:
        """Return the texts of the criteria whose checks hold now. Changes of the task are delayed meanwhile."""
        running = asyncio.ensure_future(held_before(criteria, source))
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await running

    async def ended(self) -> None:
        """Wait until the checks that are running have ended."""
        if self._running:
            await asyncio.wait(self._running, timeout=_LONGEST_SECONDS)
