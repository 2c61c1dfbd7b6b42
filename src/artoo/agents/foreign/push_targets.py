"""Where foreign agents want to be told of their tasks, and which letters are with them: kept over every crash."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.agents.storage.database import Database
from artoo.agents.storage.transaction import Reading, Writing
from artoo.contracts.errors import ForeignRefused

MOST_TARGETS = 5
"""Targets of one task."""
MOST_DUE = 20
"""Targets of one foreign agent that are told at the same time: its own that hang hold up no other's."""
_KEPT_US = 90 * 24 * 3_600 * 1_000_000


@dataclass(frozen=True, slots=True)
class Target:
    """Where one task's changes are told. `text` is the protocol's own form; `told`: up to which position."""

    board_task: str
    id: str
    text: str
    told: int
    position: int = 0


class ForeignPost:
    """One per process and home. The caller has looked whose task it is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def keep(self, target: Target) -> None:
        """Adds a target, or puts it in the place of the one with this id. Raises ForeignRefused."""

        def work(writing: Writing) -> None:
            others = writing.count(
                "SELECT count(*) FROM foreign_pushes WHERE board_task = ? AND id <> ?",
                (target.board_task, target.id),
            )
            if others >= MOST_TARGETS:
                raise ForeignRefused(f"{MOST_TARGETS} targets are told of this task already; delete one of them")
            writing.run(
                "INSERT INTO foreign_pushes (board_task, id, told, target) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (board_task, id) DO UPDATE SET told = excluded.told, target = excluded.target",
                (target.board_task, target.id, target.told, target.text),
            )

        await self._database.write(work)

    async def targets(self, board_task: str) -> tuple[Target, ...]:
        """Those of one task."""

        def work(reading: Reading) -> tuple[Target, ...]:
            rows = reading.all("SELECT * FROM foreign_pushes WHERE board_task = ? ORDER BY id", (board_task,))
            return tuple(Target(row["board_task"], row["id"], row["target"], row["told"]) for row in rows)

        return await self._database.read(work)

    async def forget(self, board_task: str, target_id: str) -> bool:
        """Takes one away; False when it was not there."""
        return await self._database.write(
            lambda writing: (
                writing.run("DELETE FROM foreign_pushes WHERE board_task = ? AND id = ?", (board_task, target_id))
                > 0
            )
        )

    async def due(self) -> tuple[Target, ...]:
        """Those that were not told the latest yet: of each foreign agent the `MOST_DUE` that wait longest."""

        def work(reading: Reading) -> tuple[Target, ...]:
            rows = reading.all(
                "SELECT board_task, id, told, target, position FROM (SELECT p.*, t.position,"
                " row_number() OVER (PARTITION BY f.peer ORDER BY t.position, p.board_task, p.id) AS place"
                " FROM foreign_pushes p JOIN foreign_tasks f ON f.board_task = p.board_task JOIN"
                " (SELECT board_task, max(position) AS position FROM transitions GROUP BY board_task) t"
                " ON t.board_task = p.board_task WHERE t.position > p.told) waiting"
                " WHERE place <= ? ORDER BY position, board_task, id",
                (MOST_DUE,),
            )
            return tuple(
                Target(row["board_task"], row["id"], row["target"], row["told"], row["position"]) for row in rows
            )

        return await self._database.read(work)

    async def told(self, target: Target) -> None:
        """It knows everything up to `target.position`, or is not told any more."""
        await self._database.write(
            lambda writing: writing.run(
                "UPDATE foreign_pushes SET told = ? WHERE board_task = ? AND id = ? AND told < ?",
                (target.position, target.board_task, target.id, target.position),
            )
        )

    async def sent(self, mail_id: str, task: str) -> None:
        """A letter is with its foreign agent, which calls it `task`: it is not sent again."""

        def work(writing: Writing) -> None:
            writing.run("DELETE FROM foreign_letters WHERE at_us < ?", (writing.now_us - _KEPT_US,))
            writing.run(
                "INSERT INTO foreign_letters VALUES (?, ?, ?)"
                " ON CONFLICT (mail) DO UPDATE SET task = excluded.task, at_us = excluded.at_us",
                (mail_id, task, writing.now_us),
            )

        await self._database.write(work)

    async def task_of(self, mail_id: str) -> str:
        """What the foreign agent calls it; empty when it was not sent yet."""

        def work(reading: Reading) -> str:
            row = reading.one("SELECT task FROM foreign_letters WHERE mail = ?", (mail_id,))
            return "" if row is None else str(row["task"])

        return await self._database.read(work)
