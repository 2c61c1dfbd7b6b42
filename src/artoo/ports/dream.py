"""Define the maintenance of memory for the Dreamer alone: bounded scans and atomic changes.

A scan returns a slice and where to go on (`after`, opaque; None: the end was reached). Slices are small, so
that neither a snapshot nor a lock is ever held for long. Every method raises MemoryStoreError.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from artoo.contracts.errors import MemoryStoreError
from artoo.contracts.memory import DreamReport, Megram, Potentials, TLayerProposal
from artoo.contracts.tags import Pair

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Slice(Generic[T]):
    """A part of a scan: the selected entries, the number of examined ones, and the start of the next slice."""

    found: tuple[T, ...]
    examined: int
    after: str | None


@dataclass(frozen=True, slots=True)
class Fading:
    """An M or K entry as the sweep sees it. `age_days` is negative for an entry from the future."""

    megram_id: str
    f: float
    k: float
    age_days: float


@dataclass(frozen=True, slots=True)
class Standing:
    """A rule, and the sums of the live M/K evidence of its pair."""

    rule: Megram
    attention: float
    decision: float


@dataclass(frozen=True, slots=True)
class Cluster:
    """The direct evidence of one pair: no hypotheses, no former rules. `megrams`: the newest of it."""

    pair: Pair
    attention: float
    decision: float
    megrams: tuple[Megram, ...]


class DreamingElsewhere(MemoryStoreError):
    """Another process, or another machine, is dreaming over this store. Nothing is wrong."""


class DreamStore(Protocol):
    """The operations of the Dreamer on the store."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Hold the right to dream for a pass. Of all processes that share the store, one has it at a time.

        Raises DreamingElsewhere on entering when another process has it. A holder that dies loses it.
        """
        ...

    async def fading(self, after: str | None, limit: int, select: Callable[[Fading], bool]) -> Slice[Fading]:
        """Return the entries that `select` picks of up to `limit` M and K entries."""
        ...

    async def forget(self, megram_ids: Sequence[str], select: Callable[[Fading], bool]) -> tuple[Megram, ...]:
        """Delete the entries that `select` still picks, and return them."""
        ...

    async def strong(self, after: str | None, limit: int, select: Callable[[float, float], bool]) -> Slice[Pair]:
        """Return the pairs, of up to `limit`, whose direct (attention, decision) `select` picks."""
        ...

    async def cluster(self, pair: Pair, newest: int) -> Cluster:
        """Return the direct evidence of a pair, with its `newest` megrams."""
        ...

    async def about(self, space: str, limit: int, newest: int) -> tuple[Cluster, ...]:
        """List up to `limit` pairs of one space, each with its direct evidence."""
        ...

    async def kinds(self, tool: Pair, limit: int) -> tuple[Potentials, ...]:
        """Return the potentials of a tool (its wide pair) for up to `limit` kinds of request. A kind whose slug is
        so long that its key is a digest is left out.
        """
        ...

    async def standing(self, after: str | None, limit: int) -> Slice[Standing]:
        """List up to `limit` rules with their live evidence."""
        ...

    async def demote(self, rule_id: str, k: float, at: datetime) -> bool:
        """Move a rule to level K with decay `k` and its clock restarted. Return False if it is no rule any more."""
        ...

    async def store(self, megram: Megram, mark: str, value: str) -> None:
        """Store a megram of the Dreamer and a mark, both or neither."""
        ...

    async def intents(self, limit: int) -> dict[str, frozenset[str]]:
        """Return the tools (identities) that worked for each intent slug, for up to `limit` intents."""
        ...

    async def mark(self, name: str) -> str | None:
        """Return a value that the Dreamer left: a cursor, or a note not to repeat something."""
        ...

    async def set_mark(self, name: str, value: str | None) -> None:
        """Set a mark, or (None) remove it."""
        ...

    async def propose(self, proposal: TLayerProposal, mark: str) -> None:
        """Store a proposal for the operator and a mark, both or neither."""
        ...

    async def keep_report(self, report: DreamReport) -> None:
        """Store a pass's report (the last 100 are retained), and forget readers that died."""
        ...
