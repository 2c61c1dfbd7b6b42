"""What a patrol remembers of each item, in the activity database: when it was last due, and what it saw then."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import microseconds, moment
from artoo.agents.storage.transaction import Reading, Writing, storable

_ALL = 1_000_000

_PROBLEM = "patrol problem: "

MOST_REMEMBERED = 500
"""Items whose state is kept for one agent, those of its routine not counted."""


@dataclass(frozen=True, slots=True)
class ItemState:
    """`last_at`: when it was last taken up. `seen`: its condition's mark. `open_key`: taken up, not finished."""

    last_at: datetime | None = None
    seen: str = ""
    open_key: str | None = None


class PatrolStore:
    """One agent's item states. Every method raises ActivityStoreError."""

    def __init__(self, database: Database, agent: str) -> None:
        self._database = database
        self._agent = agent

    async def states(self) -> dict[str, ItemState]:
        """By item key."""

        def work(reading: Reading) -> dict[str, ItemState]:
            rows = reading.all("SELECT * FROM patrols WHERE agent = ?", (self._agent,))
            return {
                row["item"]: ItemState(
                    None if row["last_at_us"] is None else moment(row["last_at_us"]), row["seen"], row["open_key"]
                )
                for row in rows
            }

        return await self._database.read(work)

    async def put(self, item: str, state: ItemState) -> None:
        """Stores a state."""
        last = None if state.last_at is None else microseconds(state.last_at)

        def work(writing: Writing) -> None:
            writing.run(
                "INSERT INTO patrols (agent, item, last_at_us, seen, open_key) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (agent, item) DO UPDATE"
                " SET last_at_us = excluded.last_at_us, seen = excluded.seen, open_key = excluded.open_key",
                (self._agent, item, last, state.seen, state.open_key),
            )

        await self._database.write(work)

    async def note_problem(self, source: str, problem: str) -> None:
        """What is wrong with a routine, for who looks later (`script_problems`); empty: nothing any more."""
        name = f"{_PROBLEM}{self._agent} {source}"

        def work(writing: Writing) -> None:
            writing.run("DELETE FROM marks WHERE name = ?", (name,))
            if problem:
                writing.run("INSERT INTO marks (name, value) VALUES (?, ?)", (name, storable(problem)))

        await self._database.write(work)

    async def forget_oldest(self, kept: Collection[str]) -> None:
        """Forgets the oldest items beyond `MOST_REMEMBERED` that are not among `kept`.

        Not every item that is gone: a file that is just being saved is empty for a moment.
        """

        def work(writing: Writing) -> None:
            rows = writing.all(
                "SELECT item FROM patrols WHERE agent = ? ORDER BY coalesce(last_at_us, 0) DESC LIMIT ? OFFSET ?",
                (self._agent, _ALL, MOST_REMEMBERED),
            )
            for item in {row["item"] for row in rows}.difference(kept):
                writing.run("DELETE FROM patrols WHERE agent = ? AND item = ?", (self._agent, item))

        await self._database.write(work)


async def script_problems(database: Database, source: str, agents: Collection[str]) -> dict[str, tuple[str, ...]]:
    """What was wrong with this routine at the last look of these agents: problem → whose. Raises
    ActivityStoreError."""

    def work(reading: Reading) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for agent in sorted(agents):
            row = reading.one("SELECT value FROM marks WHERE name = ?", (f"{_PROBLEM}{agent} {source}",))
            if row is not None:
                found[row["value"]] = (*found.get(row["value"], ()), agent)
        return found

    return await database.read(work)
