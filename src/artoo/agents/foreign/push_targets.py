"""Store the push targets (webhooks) of foreign agents' tasks durably, with the limit for a task."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.agents.storage.database import Stored, reads, writes
from artoo.agents.storage.transaction import Reading, Row, Writing
from artoo.contracts.errors import ForeignRefused

MOST_TARGETS = 5
"""Maximum number of targets of one task."""
MOST_DUE = 20
"""Maximum number of a foreign agent's targets notified at once, so that hanging ones do not delay other agents'."""


@dataclass(frozen=True, slots=True)
class Target:
    """A target notified about one task. `text`: the protocol's own form. `told`: the last reported position."""

    board_task: str
    id: str
    text: str
    told: int
    position: int = 0


class ForeignPost(Stored):
    """The push targets. One object per process and home. The caller has checked who owns the task."""

    @writes
    def keep(self, writing: Writing, target: Target) -> None:
        """Add a target, or replace the target with the same id. Raises ForeignRefused."""
        others = writing.count(
            "SELECT count(*) FROM foreign_pushes WHERE board_task = ? AND id <> ?", (target.board_task, target.id)
        )
        if others >= MOST_TARGETS:
            raise ForeignRefused(f"{MOST_TARGETS} targets are told of this task already; delete one of them")
        writing.insert(
            "foreign_pushes",
            over=("board_task", "id"),
            board_task=target.board_task,
            id=target.id,
            told=target.told,
            target=target.text,
        )

    @reads
    def targets(self, reading: Reading, board_task: str) -> tuple[Target, ...]:
        """Return the targets of one task."""
        rows = reading.all(
            "SELECT *, 0 AS position FROM foreign_pushes WHERE board_task = ? ORDER BY id", (board_task,)
        )
        return tuple(map(_target, rows))

    @writes
    def forget(self, writing: Writing, board_task: str, target_id: str) -> bool:
        """Delete a target. Returns False if it does not exist."""
        return (
            writing.run("DELETE FROM foreign_pushes WHERE board_task = ? AND id = ?", (board_task, target_id)) > 0
        )

    @reads
    def due(self, reading: Reading) -> tuple[Target, ...]:
        """Return targets with unreported changes: for each foreign agent the `MOST_DUE` that wait longest."""
        rows = reading.all(
            "SELECT board_task, id, told, target, position FROM (SELECT p.*, t.position,"
            " row_number() OVER (PARTITION BY f.peer ORDER BY t.position, p.board_task, p.id) AS place"
            " FROM foreign_pushes p JOIN foreign_tasks f ON f.board_task = p.board_task JOIN"
            " (SELECT board_task, max(position) AS position FROM transitions GROUP BY board_task) t"
            " ON t.board_task = p.board_task WHERE t.position > p.told) waiting"
            " WHERE place <= ? ORDER BY position, board_task, id",
            (MOST_DUE,),
        )
        return tuple(map(_target, rows))

    @writes
    def told(self, writing: Writing, target: Target) -> None:
        """Record that the target was notified up to `target.position`, or that notifications were given up."""
        writing.run(
            "UPDATE foreign_pushes SET told = ? WHERE board_task = ? AND id = ? AND told < ?",
            (target.position, target.board_task, target.id, target.position),
        )


def _target(row: Row) -> Target:
    return Target(row["board_task"], row["id"], row["target"], row["told"], row["position"])
