"""Store the push targets (webhooks) of foreign agents' tasks durably, with the limit for a task."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.agents.storage.database import Stored, reads, writes
from artoo.agents.storage.transaction import Reading, Row, Writing
from artoo.contracts.errors import ForeignRefused

MOST_TARGETS = 5
"""Maximum number of push targets of one task."""
MOST_DUE = 20
"""Maximum number of targets of one foreign agent that are notified at the same time. Targets that hang thus do not
delay those of other agents."""


@dataclass(frozen=True, slots=True)
class Target:
    """A target that is notified of one task. `text`: the target in the form of the protocol. `told`: the position
    up to which it was notified. `told`: the last reported position."""

    board_task: str
    id: str
    text: str
    told: int
    position: int = 0


class ForeignPost(Stored):
    """The push targets of all tasks. Use one object for each process and home. The caller has already checked to
    whom the task belongs."""

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
        """Delete a target. Returns False if there is none."""
        return (
            writing.run("DELETE FROM foreign_pushes WHERE board_task = ? AND id = ?", (board_task, target_id)) > 0
        )

    @reads
    def due(self, reading: Reading) -> tuple[Target, ...]:
        """Return the targets that have not been notified of all changes. For each foreign agent these are the
        `MOST_DUE` that have waited longest."""
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
        """Record that the target was notified up to `target.position`, or that notifying it was given up."""
        writing.run(
            "UPDATE foreign_pushes SET told = ? WHERE board_task = ? AND id = ? AND told < ?",
            (target.position, target.board_task, target.id, target.position),
        )


def _target(row: Row) -> Target:
    return Target(row["board_task"], row["id"], row["target"], row["told"], row["position"])
