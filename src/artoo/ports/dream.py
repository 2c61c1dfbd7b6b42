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
    """A part of a scan: the selected entries, the number of examined entries, and the cursor of the next slice."""

    found: tuple[T, ...]
    examined: int
    after: str | None


@dataclass(frozen=True, slots=True)
class Fading:
    """An M or K entry with the values that decide whether it is forgotten. `age_days` is negative if the date of
    the entry is in the future."""

    megram_id: str
    f: float
    k: float
    age_days: float


@dataclass(frozen=True, slots=True)
class RuleEvidence:
    """A rule with the sums of the M and K entries that are evidence about the same tag pair now."""

    rule: Megram
    attention: float
    decision: float


@dataclass(frozen=True, slots=True)
class Cluster:
    """The direct evidence of one tag pair, without hypotheses and without entries that were rules before. `megrams`
    are its newest entries."""

    pair: Pair
    attention: float
    decision: float
    megrams: tuple[Megram, ...]


class DreamingElsewhere(MemoryStoreError):
    """Raised if the Dreamer already runs on this store in another process or on another machine. This is a normal
    condition, not a failure."""


class DreamStore(Protocol):
    """The operations of the Dreamer on the store."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Return a context that holds the Dreamer's lock during one pass. Of all processes that share the store,
        only one can hold it at a time.

        Entering the context raises DreamingElsewhere if another process holds the lock. If a process dies, its lock
        is released."""
        ...

    async def fading(self, after: str | None, limit: int, select: Callable[[Fading], bool]) -> Slice[Fading]:
        """Examine up to `limit` M and K entries, and return those that `select` accepts."""
        ...

    async def forget(self, megram_ids: Sequence[str], select: Callable[[Fading], bool]) -> tuple[Megram, ...]:
        """Delete those of the given entries that `select` still accepts, and return them."""
        ...

    async def strong(self, after: str | None, limit: int, select: Callable[[float, float], bool]) -> Slice[Pair]:
        """Examine up to `limit` pairs, and return those for which `select` accepts the direct attention and the
        direct decision."""
        ...

    async def cluster(self, pair: Pair, newest: int) -> Cluster:
        """Return the direct evidence of a pair, with its `newest` megrams."""
        ...

    async def about(self, space: str, limit: int, newest: int) -> tuple[Cluster, ...]:
        """List up to `limit` pairs of one space, each with its direct evidence."""
        ...

    async def kinds(self, tool: Pair, limit: int) -> tuple[Potentials, ...]:
        """Return the potentials of a tool, which its wide pair names, for up to `limit` kinds of request. Kinds
        whose slug is so long that their key is a digest are left out."""
        ...

    async def standing(self, after: str | None, limit: int) -> Slice[RuleEvidence]:
        """List up to `limit` rules with their live evidence."""
        ...

    async def demote(self, rule_id: str, k: float, at: datetime) -> bool:
        """Turn a rule into an entry of level K with the decay `k`, whose age is counted from `at`. Return False if
        the entry is no rule any more."""
        ...

    async def store(self, megram: Megram, mark: str, value: str) -> None:
        """Store a megram of the Dreamer and a mark in one transaction."""
        ...

    async def intents(self, limit: int) -> dict[str, frozenset[str]]:
        """Return the tools (identities) that worked for each intent slug, for up to `limit` intents."""
        ...

    async def mark(self, name: str) -> str | None:
        """Return a value that the Dreamer stored under a name: a cursor, or a mark that prevents the Dreamer from
        repeating a step."""
        ...

    async def set_mark(self, name: str, value: str | None) -> None:
        """Set a mark, or remove it if `value` is None."""
        ...

    async def propose(self, proposal: TLayerProposal, mark: str) -> None:
        """Store a proposal for the operator and a mark in one transaction."""
        ...

    async def keep_report(self, report: DreamReport) -> None:
        """Store the report of a pass, and remove the entries of dead readers. The store retains the last 100
        reports."""
        ...
