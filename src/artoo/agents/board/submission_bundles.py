"""Differences of submissions that lie in the store: which, made where, for whom (SPEC section 13).

The machine that made a submission announces its difference, sends the pieces (`store.parcels`), and says that it is
whole. One machine at a time may apply it. The store forgets it with the move that settles it, or with a newer one.
"""

from __future__ import annotations

from dataclasses import dataclass

from artoo.agents.board.claim_holders import machine_of
from artoo.agents.board.rows import ANYBODY
from artoo.agents.storage.database import Database
from artoo.agents.storage.transaction import Reading, Row, Writing
from artoo.contracts.agents import BoardState
from artoo.contracts.errors import ClaimLost


@dataclass(frozen=True, slots=True)
class Kept:
    """One difference. `machine` made it; `applying` is the one that may apply it, empty: whoever asks first.

    `stays` says why it does not travel; `sha256` is that of the parcel, of `size` bytes. `dossier` and `review` are
    JSON: the evidence, and how it looked where it was made.
    """

    task: str
    submission: int
    machine: str
    whole: bool
    stays: str
    size: int
    sha256: str
    dossier: str
    review: str
    applying: str

    @property
    def is_here(self) -> bool:
        """Whether any machine can have it from the store."""
        return self.whole and not self.stays


class Differences:
    """Rows of a shared store. Every method raises ActivityStoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, task: str, submission: int) -> Kept | None:
        """What the store knows of a submission's difference."""

        def work(reading: Reading) -> Kept | None:
            row = reading.one("SELECT * FROM differences WHERE task = ? AND submission = ?", (task, submission))
            return None if row is None else _kept(row)

        return await self._database.read(work)

    async def of_machine(self, machine: str) -> tuple[Kept, ...]:
        """Those that a machine has made, or may apply; without dossier and review."""
        columns = "task, submission, machine, whole, stays, size, sha256, '' AS dossier, '' AS review, applying"
        rows = await self._database.read(
            lambda reading: reading.all(
                f"SELECT {columns} FROM differences WHERE machine = ? OR applying = ? ORDER BY made_us LIMIT 10000",
                (machine, machine),
            )
        )
        return tuple(map(_kept, rows))

    async def announce(
        self, task: str, submission: int, *, stays: str, size: int, sha256: str, dossier: str, review: str
    ) -> bool:
        """Says that the difference of a submission of this machine's is coming, or why it stays.

        False: it is no longer the submission that waits, or another machine made it. Nothing is changed then.
        """

        def work(writing: Writing) -> bool:
            epoch = _waits(writing, task, submission)
            if epoch is None:
                return False
            writing.run(
                "INSERT INTO differences (task, submission, machine, epoch, stays, size, sha256, dossier, review)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (task, submission) DO UPDATE SET stays ="
                " excluded.stays, size = excluded.size, sha256 = excluded.sha256, dossier = excluded.dossier,"
                " review = excluded.review, epoch = excluded.epoch, whole = FALSE",
                (
                    *(task, submission, machine_of(writing.holder), epoch, stays, size, sha256),
                    *(dossier, review),
                ),
            )
            return True

        return await self._database.write(work)

    async def whole(self, task: str, submission: int, sha256: str) -> bool:
        """All pieces are there, and whoever reviews may begin. False: it is not wanted any more."""

        def work(writing: Writing) -> bool:
            if _waits(writing, task, submission) is None:
                return False
            writing.arrived(ANYBODY)
            return (
                writing.run(
                    "UPDATE differences SET whole = TRUE WHERE task = ? AND submission = ? AND sha256 = ?",
                    (task, submission, sha256),
                )
                > 0
            )

        return await self._database.write(work)

    async def forget(self, task: str, submission: int) -> None:
        """It is not there any more on the machine that made it: nobody shall apply it elsewhere."""
        await self._database.write(
            lambda writing: writing.run(
                "DELETE FROM differences WHERE task = ? AND submission = ?", (task, submission)
            )
        )

    async def take(self, task: str, submission: int) -> None:
        """This machine is about to apply it, and no other may then. May be repeated.

        Raises ClaimLost when another one is at it, or something else waits by now.
        """

        def work(writing: Writing) -> None:
            row = writing.one("SELECT state, submission, made_on FROM tasks WHERE id = ?", (task,), hold="wait")
            if row is None or (row["state"], row["submission"]) != (BoardState.REVIEW.value, submission):
                raise ClaimLost(f"Task {task}: submission {submission} is not waiting any more; look again.")
            mine = machine_of(writing.holder)
            taken = writing.run(
                "INSERT INTO differences (task, submission, machine, epoch, applying)"
                " SELECT id, submission, made_on, epoch, CAST(? AS text) FROM tasks WHERE id = ?"
                " ON CONFLICT (task, submission) DO UPDATE SET applying = excluded.applying"
                " WHERE differences.applying IN ('', excluded.applying)",
                (mine, task),
            )
            if not taken:
                other = writing.one(
                    "SELECT applying FROM differences WHERE task = ? AND submission = ?", (task, submission)
                )
                raise ClaimLost(
                    f"Task {task} is being applied on {'another machine' if other is None else other['applying']};"
                    " it can be rejected from anywhere."
                )

        await self._database.write(work)

    async def let_go(self, task: str, submission: int) -> None:
        """This machine did not apply it."""
        await self._database.write(
            lambda writing: writing.run(
                "UPDATE differences SET applying = '' WHERE task = ? AND submission = ? AND applying = ?",
                (task, submission, machine_of(writing.holder)),
            )
        )


def _waits(writing: Writing, task: str, submission: int) -> int | None:
    """The epoch of the task, which is held, when it is this machine's submission that waits; else None."""
    row = writing.one("SELECT state, submission, made_on, epoch FROM tasks WHERE id = ?", (task,), hold="wait")
    wanted = (BoardState.REVIEW.value, submission, machine_of(writing.holder))
    if row is None or (row["state"], row["submission"], row["made_on"]) != wanted:
        return None
    return int(row["epoch"])


def _kept(row: Row) -> Kept:
    return Kept(
        task=row["task"],
        submission=row["submission"],
        machine=row["machine"],
        whole=row["whole"],
        stays=row["stays"],
        size=row["size"],
        sha256=row["sha256"],
        dossier=row["dossier"],
        review=row["review"],
        applying=row["applying"],
    )
