"""Keep the change sets of submissions in the store (SPEC section 13).

The machine that made a submission announces its difference, sends the pieces (`store.parcels`), and says that it is
whole. One machine at a time may apply it. The store forgets it with the move that settles it, or with a newer one.
"""

from __future__ import annotations

from dataclasses import dataclass

from artoo.agents.board.claim_holders import machine_of
from artoo.agents.board.rows import ANYBODY
from artoo.agents.storage.database import Stored, reads, writes
from artoo.agents.storage.transaction import Reading, Writing, made
from artoo.contracts.agents import BoardState
from artoo.contracts.errors import ClaimLost


@dataclass(frozen=True, slots=True)
class Kept:
    """One difference. `machine` made it; `applying` is the one that may apply it, empty: the first that asks.

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
        """Return whether any machine can fetch it from the store."""
        return self.whole and not self.stays


class Differences(Stored):
    """The change sets in a shared store. Every method raises ActivityStoreError."""

    @reads
    def of(self, reading: Reading, task: str, submission: int) -> Kept | None:
        """Return what the store knows of a submission's difference."""
        row = reading.one("SELECT * FROM differences WHERE task = ? AND submission = ?", (task, submission))
        return None if row is None else made(Kept, row)

    @reads
    def of_machine(self, reading: Reading, machine: str) -> tuple[Kept, ...]:
        """Return those that a machine has made, or may apply; without dossier and review."""
        rows = reading.all(
            "SELECT task, submission, machine, whole, stays, size, sha256, '' AS dossier, '' AS review, applying"
            " FROM differences WHERE machine = ? OR applying = ? ORDER BY made_us LIMIT 10000",
            (machine, machine),
        )
        return tuple(made(Kept, row) for row in rows)

    @writes
    def announce(
        self,
        writing: Writing,
        task: str,
        submission: int,
        *,
        stays: str,
        size: int,
        sha256: str,
        dossier: str,
        review: str,
    ) -> bool:
        """Say that the difference of a submission of this machine's is coming, or why it stays.

        False: it is no longer the submission that waits, or another machine made it. Nothing is changed then.
        """
        epoch = _waits(writing, task, submission)
        if epoch is None:
            return False
        writing.insert(
            "differences",
            over=("task", "submission"),
            task=task,
            submission=submission,
            machine=machine_of(writing.holder),
            epoch=epoch,
            stays=stays,
            size=size,
            sha256=sha256,
            dossier=dossier,
            review=review,
            whole=False,
        )
        return True

    @writes
    def whole(self, writing: Writing, task: str, submission: int, sha256: str) -> bool:
        """Record that all pieces are there, and a review may begin. False: it is not wanted any more."""
        if _waits(writing, task, submission) is None:
            return False
        writing.arrived(ANYBODY)
        whole = "UPDATE differences SET whole = TRUE WHERE task = ? AND submission = ? AND sha256 = ?"
        return writing.run(whole, (task, submission, sha256)) > 0

    @writes
    def forget(self, writing: Writing, task: str, submission: int) -> None:
        """Delete what the machine that made it has no longer: no other may apply it."""
        writing.run("DELETE FROM differences WHERE task = ? AND submission = ?", (task, submission))

    @writes
    def take(self, writing: Writing, task: str, submission: int) -> None:
        """Claim the right to apply it for this machine; no other may then. May be repeated.

        Raises ClaimLost when another one is at it, or something else waits by now.
        """
        # The task's row is held, so that no move settles it in between.
        row = writing.one("SELECT state, submission FROM tasks WHERE id = ?", (task,), hold="wait")
        if row is None or (row["state"], row["submission"]) != (BoardState.REVIEW.value, submission):
            raise ClaimLost(f"Task {task}: submission {submission} is not waiting any more; look again.")
        taken = writing.run(
            "INSERT INTO differences (task, submission, machine, epoch, applying)"
            " SELECT id, submission, made_on, epoch, CAST(? AS text) FROM tasks WHERE id = ?"
            " ON CONFLICT (task, submission) DO UPDATE SET applying = excluded.applying"
            " WHERE differences.applying IN ('', excluded.applying)",
            (machine_of(writing.holder), task),
        )
        if not taken:
            query = "SELECT applying FROM differences WHERE task = ? AND submission = ?"
            other = "".join(writing.names(query, (task, submission)))
            raise ClaimLost(
                f"Task {task} is being applied on {other or 'another machine'}; it can be rejected from anywhere."
            )

    @writes
    def let_go(self, writing: Writing, task: str, submission: int) -> None:
        """Give the right to apply it back."""
        writing.run(
            "UPDATE differences SET applying = '' WHERE task = ? AND submission = ? AND applying = ?",
            (task, submission, machine_of(writing.holder)),
        )


def _waits(writing: Writing, task: str, submission: int) -> int | None:
    """Return the epoch of the task, which is held, when this machine's submission waits; else None."""
    row = writing.one("SELECT state, submission, made_on, epoch FROM tasks WHERE id = ?", (task,), hold="wait")
    wanted = (BoardState.REVIEW.value, submission, machine_of(writing.holder))
    if row is None or (row["state"], row["submission"], row["made_on"]) != wanted:
        return None
    return int(row["epoch"])
