"""The interface of the Dreamer's store, with bounded scans, clusters and atomic changes.

A scan returns a slice and an opaque cursor for the next slice (`after`; None at the end). Slices are small, so
that neither a snapshot nor a lock is held for long. Every method may raise MemoryStoreError.
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
    """An M or K entry with the values that decide about forgetting. `age_days` is negative for a future date."""

    megram_id: str
    f: float
    k: float
    age_days: float


@dataclass(frozen=True, slots=True)
class RuleEvidence:
    """A rule with the sums of the live M and K evidence of its pair."""

    rule: Megram
    attention: float
    decision: float


@dataclass(frozen=True, slots=True)
class Cluster:
    """The direct evidence of one pair, without hypotheses and former rules. `megrams` are its newest entries."""

    pair: Pair
    attention: float
    decision: float
    megrams: tuple[Megram, ...]


class DreamingElsewhere(MemoryStoreError):
    """Raised if another process or machine runs the Dreamer on this store, which is a normal condition."""


class DreamStore(Protocol):
    """The operations of the Dreamer on the store."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Hold the Dreamer's lock for a pass. Of all processes that share the store, only one can hold it at a
        time.

        Raises DreamingElsewhere on entering if another process holds it. A process that dies loses the lock."""
        ...

    async def fading(self, after: str | None, limit: int, select: Callable[[Fading], bool]) -> Slice[Fading]:
        """Examine up to `limit` M and K entries, and return those that `select` accepts."""
        ...

    async def forget(self, megram_ids: Sequence[str], select: Callable[[Fading], bool]) -> tuple[Megram, ...]:
        """Delete the entries that `select` still accepts, and return them."""
        ...

    async def strong(self, after: str | None, limit: int, select: Callable[[float, float], bool]) -> Slice[Pair]:
        """Examine up to `limit` pairs, and return those whose direct attention and decision `select` accepts."""
        ...

    async def cluster(self, pair: Pair, newest: int) -> Cluster:
        """Return the direct evidence of a pair, with its `newest` megrams."""
        ...

    async def about(self, space: str, limit: int, newest: int) -> tuple[Cluster, ...]:
        """List up to `limit` pairs of one space, each with its direct evidence."""
        ...

    async def kinds(self, tool: Pair, limit: int) -> tuple[Potentials, ...]:
        """Return the potentials of a tool (given by its wide pair) for up to `limit` kinds of request. Kinds
        whose slug is so long that their key is a digest are left out."""
        ...

    async def standing(self, after: str | None, limit: int) -> Slice[RuleEvidence]:
        """List up to `limit` rules with their live evidence."""
        ...

    async def demote(self, rule_id: str, k: float, at: datetime) -> bool:
        """Move a rule to level K with decay `k`, aging from `at` on. Return False if it is no longer a rule."""
        ...

    async def store(self, megram: Megram, mark: str, value: str) -> None:
        """Store a megram of the Dreamer and a mark in one transaction."""
        ...

    async def intents(self, limit: int) -> dict[str, frozenset[str]]:
        """Return the tools (identities) that worked for each intent slug, for up to `limit` intents."""
        ...

    async def mark(self, name: str) -> str | None:
        """Return a value that the Dreamer stored: a cursor, or a mark that prevents a repetition."""
        ...

    async def set_mark(self, name: str, value: str | None) -> None:
        """Set a mark, or remove it if `value` is None."""
        ...

    async def propose(self, proposal: TLayerProposal, mark: str) -> None:
        """Store a proposal for the operator and a mark in one transaction."""
        ...

    async def keep_report(self, report: DreamReport) -> None:
        """Store the report of a pass (the last 100 are retained), and remove the entries of dead readers."""
        ...
