"""Store the last run, the mark and the problem of each patrol item, with the limit on items.

The state is stored in the activity database.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from artoo.agents.storage.database import Database, Stored, reads, writes
from artoo.agents.storage.monotonic_clock import microseconds
from artoo.agents.storage.transaction import Reading, Writing, made, marked

_PROBLEM = "patrol problem: "

MOST_REMEMBERED = 500
"""Maximum number of states that are kept for an agent in addition to those of the current items."""


@dataclass(frozen=True, slots=True)
class ItemState:
    """The state of an item. `last_at`: when it was last started. `seen`: the mark of its condition. `open_key`: the
    key of a run that has not ended."""

    last_at: datetime | None = None
    seen: str = ""
    open_key: str | None = None


class PatrolStore(Stored):
    """The states of the items of one agent. Every method raises ActivityStoreError."""

    def __init__(self, database: Database, agent: str) -> None:
        super().__init__(database)
        self._agent = agent

    @reads
    def states(self, reading: Reading) -> dict[str, ItemState]:
        """Return all states, by item key."""
        rows = reading.all("SELECT * FROM patrols WHERE agent = ?", (self._agent,))
        return {row["item"]: made(ItemState, row) for row in rows}

    @writes
    def put(self, writing: Writing, item: str, state: ItemState) -> None:
        """Store the state of an item."""
        last = None if state.last_at is None else microseconds(state.last_at)
        writing.insert(
            "patrols",
            over=("agent", "item"),
            agent=self._agent,
            item=item,
            last_at_us=last,
            seen=state.seen,
            open_key=state.open_key,
        )

    @writes
    def note_problem(self, writing: Writing, source: str, problem: str) -> None:
        """Store the current problem of a routine, which `script_problems` returns. An empty text removes it."""
        writing.mark(f"{_PROBLEM}{self._agent} {source}", problem)

    @writes
    def forget_oldest(self, writing: Writing, kept: Collection[str]) -> None:
        """Delete the oldest states beyond `MOST_REMEMBERED`. States of the items in `kept` are never deleted.

        The states of removed items are not deleted at once, because a file that is being saved is empty for a
        moment.
        """
        oldest = "SELECT item FROM patrols WHERE agent = ? ORDER BY coalesce(last_at_us, 0) DESC"
        for item in set(writing.names(oldest, (self._agent,))[MOST_REMEMBERED:]).difference(kept):
            writing.run("DELETE FROM patrols WHERE agent = ? AND item = ?", (self._agent, item))


async def script_problems(database: Database, source: str, agents: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the problems that this routine had when these agents last checked it. Each problem is mapped to its
    agents. Raises ActivityStoreError."""

    def work(reading: Reading) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for agent in sorted(agents):
            if problem := marked(reading, f"{_PROBLEM}{agent} {source}"):
                found[problem] = (*found.get(problem, ()), agent)
        return found

    return await database.read(work)
