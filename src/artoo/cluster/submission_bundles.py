"""Tables of submitted change sets in the store, sent in pieces and applied by one machine at a time.

Reference: SPEC section 13.

The machine that made a submission announces the change set, sends it in pieces (`store.parcels`), and records when
all pieces are sent. Only one machine at a time may apply a change set. The store deletes a change set when its task
leaves review, or when a newer submission replaces it.
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
    """One change set in the store. `machine`: the machine that made it. `applying`: the machine that has the right
    to apply it. If that is empty, any machine may claim the right.

    `stays`: the reason why it cannot leave its machine, or empty. `sha256` and `size` (in bytes) describe the
    packed bundle. `dossier` (the evidence) and `review` (made on `machine`) are JSON.
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
        """Return whether the whole change set can be fetched from the store."""
        return self.whole and not self.stays


class Differences(Stored):
    """The change sets in a shared store. Every method raises ActivityStoreError."""

    @reads
    def of(self, reading: Reading, task: str, submission: int) -> Kept | None:
        """Return the store's record of the change set of a submission."""
        row = reading.one("SELECT * FROM differences WHERE task = ? AND submission = ?", (task, submission))
        return None if row is None else made(Kept, row)

    @reads
    def of_machine(self, reading: Reading, machine: str) -> tuple[Kept, ...]:
        """Return the change sets that a machine has made or is applying. Evidence and review are left out."""
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
        """Announce that this machine will send the change set of its submission, or the reason why it will not.

        Returns False and changes nothing if the submission is no longer pending, or if another machine made it.
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
        """Record that all pieces are stored, so that a review can begin. Returns False if the submission is no
        longer pending."""
        if _waits(writing, task, submission) is None:
            return False
        writing.arrived(ANYBODY)
        whole = "UPDATE differences SET whole = TRUE WHERE task = ? AND submission = ? AND sha256 = ?"
        return writing.run(whole, (task, submission, sha256)) > 0

    @writes
    def forget(self, writing: Writing, task: str, submission: int) -> None:
        """Delete a change set whose files no longer exist on the machine that made it, so that no machine can apply
        it."""
        writing.run("DELETE FROM differences WHERE task = ? AND submission = ?", (task, submission))

    @writes
    def take(self, writing: Writing, task: str, submission: int) -> None:
        """Claim the right to apply the change set for this machine. Idempotent.

        Raises ClaimLost if another machine has this right, or if the submission is no longer pending.
        """
        # The row of the task is locked, so that no other transaction can move the task meanwhile.
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
        """Release this machine's right to apply the change set."""
        writing.run(
            "UPDATE differences SET applying = '' WHERE task = ? AND submission = ? AND applying = ?",
            (task, submission, machine_of(writing.holder)),
        )


def _waits(writing: Writing, task: str, submission: int) -> int | None:
    """Lock the row of the task. If the submission of this machine is pending, return its epoch. Otherwise return
    None."""
    row = writing.one("SELECT state, submission, made_on, epoch FROM tasks WHERE id = ?", (task,), hold="wait")
    wanted = (BoardState.REVIEW.value, submission, machine_of(writing.holder))
    if row is None or (row["state"], row["submission"], row["made_on"]) != wanted:
        return None
    return int(row["epoch"])
