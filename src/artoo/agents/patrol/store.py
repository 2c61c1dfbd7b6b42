"""Store the state of each patrol item in the activity database: when it was last due, and its mark then."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from artoo.agents.storage.database import Database, Stored, reads, writes
from artoo.agents.storage.monotonic_clock import microseconds
from artoo.agents.storage.transaction import Reading, Writing, made, marked

_PROBLEM = "patrol problem: "

MOST_REMEMBERED = 500
"""Items whose state is kept for one agent, those of its routine not counted."""


@dataclass(frozen=True, slots=True)
class ItemState:
    """The state of an item. `last_at`: its last begin. `seen`: its condition's mark. `open_key`: not finished."""

    last_at: datetime | None = None
    seen: str = ""
    open_key: str | None = None


class PatrolStore(Stored):
    """One agent's item states. Every method raises ActivityStoreError."""

    def __init__(self, database: Database, agent: str) -> None:
        super().__init__(database)
        self._agent = agent

    @reads
    def states(self, reading: Reading) -> dict[str, ItemState]:
        """Return all states by the items' keys."""
        rows = reading.all("SELECT * FROM patrols WHERE agent = ?", (self._agent,))
        return {row["item"]: made(ItemState, row) for row in rows}

    @writes
    def put(self, writing: Writing, item: str, state: ItemState) -> None:
        """Store a state."""
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
        """Keep what is wrong with a routine, for who looks later (`script_problems`); empty: nothing any more."""
        writing.mark(f"{_PROBLEM}{self._agent} {source}", problem)

    @writes
    def forget_oldest(self, writing: Writing, kept: Collection[str]) -> None:
        """Forget the oldest items beyond `MOST_REMEMBERED` that are not among `kept`.

        Not every item that is gone: a file that is just being saved is empty for a moment.
        """
        oldest = "SELECT item FROM patrols WHERE agent = ? ORDER BY coalesce(last_at_us, 0) DESC"
        for item in set(writing.names(oldest, (self._agent,))[MOST_REMEMBERED:]).difference(kept):
            writing.run("DELETE FROM patrols WHERE agent = ? AND item = ?", (self._agent, item))


async def script_problems(database: Database, source: str, agents: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return what was wrong with this routine at the last look of these agents: problem → whose. Raises
    ActivityStoreError."""

    def work(reading: Reading) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for agent in sorted(agents):
            if problem := marked(reading, f"{_PROBLEM}{agent} {source}"):
                found[problem] = (*found.get(problem, ()), agent)
        return found

    return await database.read(work)
