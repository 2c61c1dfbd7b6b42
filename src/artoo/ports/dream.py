"""Memory's maintenance side: bounded scans and atomic changes for the Dreamer, and nobody else.

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
    """A part of a scan: what was selected, how much was looked at, where the next slice begins."""

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
    """A rule and what the live M/K evidence of its pair says."""

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
    """What the Dreamer may do with the store."""

    def turn(self) -> AbstractAsyncContextManager[None]:
        """The right to dream, one at a time over all that share the store, held for a pass.

        Raises DreamingElsewhere on entering when somebody else has it. A holder that dies loses it.
        """
        ...

    async def fading(self, after: str | None, limit: int, select: Callable[[Fading], bool]) -> Slice[Fading]:
        """Looks at up to `limit` M and K entries and returns those that `select` picks."""
        ...

    async def forget(self, megram_ids: Sequence[str], select: Callable[[Fading], bool]) -> tuple[Megram, ...]:
        """Deletes those that `select` still picks, and returns them."""
        ...

    async def strong(self, after: str | None, limit: int, select: Callable[[float, float], bool]) -> Slice[Pair]:
        """Looks at up to `limit` pairs; returns those whose direct (attention, decision) `select` picks."""
        ...

    async def cluster(self, pair: Pair, newest: int) -> Cluster:
        """The direct evidence of a pair, with its `newest` megrams."""
        ...

    async def about(self, space: str, limit: int, newest: int) -> tuple[Cluster, ...]:
        """Up to `limit` pairs of one space, each with its direct evidence."""
        ...

    async def kinds(self, tool: Pair, limit: int) -> tuple[Potentials, ...]:
        """What is known of a tool (its wide pair) for up to `limit` kinds of request. A kind whose slug is so long
        that its key is a digest is left out.
        """
        ...

    async def standing(self, after: str | None, limit: int) -> Slice[Standing]:
        """Up to `limit` rules with their live evidence."""
        ...

    async def demote(self, rule_id: str, k: float, at: datetime) -> bool:
        """Moves a rule to level K with decay `k` and its clock restarted. False when it is no rule any more."""
        ...

    async def store(self, megram: Megram, mark: str, value: str) -> None:
        """Stores a megram of the Dreamer's making and a mark, both or neither."""
        ...

    async def intents(self, limit: int) -> dict[str, frozenset[str]]:
        """Intent slugs and the tools (identities) that worked for each, for up to `limit` intents."""
        ...

    async def mark(self, name: str) -> str | None:
        """A value that the Dreamer left: a cursor, or a note not to repeat something."""
        ...

    async def set_mark(self, name: str, value: str | None) -> None:
        """Leaves or (None) removes a mark."""
        ...

    async def propose(self, proposal: TLayerProposal, mark: str) -> None:
        """Keeps a proposal for the operator, and a mark, both or neither."""
        ...

    async def keep_report(self, report: DreamReport) -> None:
        """Keeps a pass's report (the last 100) and lets go of readers that died."""
        ...
