"""Send, claim, answer, archive and recover letters, with the delivery attempts and the days in the archive.

Each letter is accepted once and delivered once (SPEC section 11).

    outbox (accepted) ─► inbox (delivered) ─► archive (dealt with)

A letter that was accepted is stored on disk. It is given to one process under a lease, and archived after that
process has handled it. If the process dies before that, `recover` releases the letter. An answer and the archiving
of the letter happen in one transaction.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta

from artoo.agents.mail.rows import (
    BY_RANK,
    Kept,
    MailClaim,
    check_address,
    check_reader,
    file_away,
    find_mail,
    forget_depths,
    hand_over,
    held_mail,
    kept_of,
    post,
)
from artoo.agents.storage.database import Database, Stored, reads, writes
from artoo.agents.storage.monotonic_clock import LEASE_SECONDS, microseconds, seconds_us
from artoo.agents.storage.transaction import Reading, Row, Writing, made, storable
from artoo.contracts.agents import ACTOR, LONGEST_MAIL, Mail, Partition, Priority
from artoo.contracts.errors import ClaimLost, MailRefused
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids

MOST_ATTEMPTS = 10
"""Maximum number of times that a letter is delivered to readers that die. After that, it is archived with a
note."""


FORGOTTEN_AT_ONCE = 500

_ACTOR = re.compile(ACTOR)


class Mailbox(Stored):
    """The letters of a home. Methods raise MailRefused, ClaimLost or ActorRefused. After an error nothing has
    changed."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        ids: Ids,
        *,
        keep_days: int = 90,
        missing: Callable[[], Awaitable[Collection[str]]] | None = None,
    ) -> None:
        """Open the mailbox. `keep_days`: the number of days for which archived letters are kept.

        `missing` returns the registered agents whose folders do not exist any more, so that no one would read their
        letters.
        """
        super().__init__(database)
        self._clock = clock
        self._ids = ids
        self._kept = timedelta(days=keep_days)
        self._missing = missing

    async def send(
        self,
        sender: str,
        recipient: str,
        text: str,
        *,
        priority: Priority = Priority.STANDARD,
        in_reply_to: str | None = None,
        mail_id: str | None = None,
    ) -> Mail:
        """Store a letter durably and deliver it. The call never waits for the recipient.

        `mail_id`: an id that the caller chose. If a letter with this id was sent before, nothing is sent.
        """
        mail = self.letter(sender, recipient, text, priority=priority, in_reply_to=in_reply_to, mail_id=mail_id)
        gone = await self.gone()

        def work(writing: Writing) -> Mail:
            # Two processes may send a letter with the same id at the same time, when no row exists yet that could
            # be locked.
            if mail_id is not None:
                writing.alone(f"letter {mail_id}")
            known = writing.one("SELECT * FROM mails WHERE id = ?", (mail.id,))
            if known is not None:
                return made(Mail, known)
            post(writing, mail, gone)
            return mail

        return await self.database.write(work)

    def letter(
        self,
        sender: str,
        recipient: str,
        text: str,
        *,
        priority: Priority = Priority.STANDARD,
        requires_reply: bool = False,
        in_reply_to: str | None = None,
        mail_id: str | None = None,
    ) -> Mail:
        """Create a letter without sending it. Raises MailRefused if the text is empty or too long, or if the
        recipient is invalid."""
        if _ACTOR.fullmatch(recipient) is None:
            raise MailRefused(f"{recipient!r} is nobody's name: it has lower-case letters, digits, - and _ only.")
        text = storable(text)
        if not text.strip():
            raise MailRefused(f"The letter of {sender} to {recipient} is empty; write what is wanted.")
        if len(text) > LONGEST_MAIL:
            raise MailRefused(
                f"The letter of {sender} to {recipient} has {len(text):,} characters, at most {LONGEST_MAIL:,} are"
                " taken; put it into a file and name that file."
            )
        return Mail(
            id=mail_id or self._ids.new(),
            sender=sender,
            recipient=recipient,
            text=text,
            priority=priority,
            requires_reply=requires_reply,
            in_reply_to=in_reply_to,
            sent_at=self._clock.now(),
        )

    async def gone(self) -> Collection[str]:
        """Return the registered agents to which no letter can be sent."""
        return () if self._missing is None else await self._missing()

    @reads
    def earlier(self, reading: Reading, mail: Mail, *, limit: int) -> tuple[Mail, ...]:
        """Return the last letters that the sender and the recipient of `mail` exchanged before it, oldest first."""
        rows = reading.all(
            "SELECT * FROM mails WHERE (sender = :one AND recipient = :other OR sender = :other AND"
            " recipient = :one) AND position < (SELECT position FROM mails WHERE id = :id)"
            " ORDER BY position DESC LIMIT :limit",
            {"one": mail.sender, "other": mail.recipient, "id": mail.id, "limit": limit},
        )
        return tuple(made(Mail, row) for row in reversed(rows))

    @reads
    def get(self, reading: Reading, mail_id: str) -> Kept:
        """Return a letter, and the partition in which it is."""
        return kept_of(find_mail(reading, mail_id))

    @reads
    def list(self, reading: Reading, name: str, partition: Partition, *, limit: int = 200) -> tuple[Kept, ...]:
        """Return the newest letters of a partition, oldest first. They are the letters to `name`, or in the outbox
        those from `name`."""
        side = "sender" if partition == "outbox" else "recipient"
        return _listed(reading, name, f"{side} = ? AND partition = '{partition}'", limit)

    @reads
    def sent(self, reading: Reading, name: str, *, limit: int = 200) -> tuple[Kept, ...]:
        """Return the newest letters from `name` in all partitions, oldest first."""
        return _listed(reading, name, "sender = ?", limit)

    @reads
    def unread(self, reading: Reading, name: str) -> int:
        """Return the number of letters in the inbox that no process has claimed."""
        return reading.count(
            "SELECT count(*) FROM mails WHERE recipient = ? AND partition = 'inbox' AND claim IS NULL", (name,)
        )

    @writes
    def take(
        self, writing: Writing, name: str, mail_id: str | None = None, *, lease_seconds: float = LEASE_SECONDS
    ) -> MailClaim | None:
        """Claim the letter `mail_id`. If it is None, claim the most urgent letter in the inbox, and the oldest of
        these. Return None if there is none."""
        check_reader(writing, name)
        row = _next(writing, name) if mail_id is None else find_mail(writing, mail_id)
        if row is None:
            return None
        return take_mail_in(writing, row, name, self._ids.new(), seconds_us(lease_seconds))

    @writes
    def renew(self, writing: Writing, claim: MailClaim, *, lease_seconds: float = LEASE_SECONDS) -> None:
        """Renew the claim, because the process is still handling the letter."""
        held_mail(writing, claim)
        writing.change("mails", claim.mail.id, lease_us=writing.steady_us + seconds_us(lease_seconds))

    @writes
    def archive(self, writing: Writing, claim: MailClaim, note: str = "") -> None:
        """Move a letter to the archive after it was handled."""
        file_away(writing, held_mail(writing, claim), note)

    async def answer(self, claim: MailClaim, text: str, note: str = "answered") -> Mail:
        """Send the answer and archive the letter in one transaction, so that an answer is never sent twice."""
        mail = claim.mail
        reply = self.letter(mail.recipient, mail.sender, text, priority=mail.priority, in_reply_to=mail.id)
        gone = await self.gone()

        def work(writing: Writing) -> Mail:
            file_away(writing, held_mail(writing, claim), note)
            post(writing, reply, gone)
            return reply

        return await self.database.write(work)

    @writes
    def release(self, writing: Writing, claim: MailClaim) -> None:
        """Release a letter that was not handled, so that another reader can claim it. A claim that has already
        ended is ignored.

        This delivery is not counted. Its reader is alive, and perhaps only the model was not available.
        """
        _give_back(writing, claim.mail.id, claim.token, claim.epoch, counts=False)
        writing.arrived(claim.mail.recipient)

    @writes
    def recover(self, writing: Writing, is_dead: Callable[[str], bool] | None = None) -> tuple[str, ...]:
        """Release the letters of processes that are dead or no longer renew their claims. Also delete waits without
        a waiting process, and old letters in the archive.

        It must be called at the start and then periodically. Returns the ids of the letters that were released.
        """
        is_dead = is_dead or self.database.is_dead
        rows = writing.all("SELECT * FROM mails WHERE holder IS NOT NULL AND partition = 'inbox'", hold="skip")
        lost = [row for row in rows if row["lease_us"] <= writing.steady_us or is_dead(row["holder"])]
        for row in lost:
            _give_back(writing, row["id"], row["claim"], row["epoch"])
            if row["attempts"] >= MOST_ATTEMPTS:
                note = f"given up: handed over {row['attempts']} times, and each time its reader died"
                file_away(writing, made(Mail, row), note)
            writing.arrived(row["recipient"])
        # If a process that waits is dead, its wait would reserve the reply for no one.
        for row in writing.all("SELECT mail, holder, until_us FROM waits", hold="skip"):
            if row["until_us"] <= writing.steady_us or is_dead(row["holder"]):
                writing.run("DELETE FROM waits WHERE mail = ?", (row["mail"],))
        _forget_archived(writing, microseconds(writing.now - self._kept))
        return tuple(str(row["id"]) for row in lost)


def take_mail_in(writing: Writing, row: Row, name: str, token: str, lease_us: int) -> MailClaim:
    """Claim this letter for `name` inside a transaction. Raises MailRefused or ClaimLost."""
    if row["recipient"] != name:
        raise MailRefused(f"Letter {row['id']} is {row['recipient']}'s, not {name}'s.")
    if row["partition"] != "inbox" or row["claim"] is not None:
        where = "being read by another process" if row["claim"] is not None else f"in the {row['partition']}"
        raise ClaimLost(f"Letter {row['id']} is {where} already.")
    return hand_over(writing, row, token, name, lease_us)


def _listed(reading: Reading, name: str, where: str, limit: int) -> tuple[Kept, ...]:
    check_address(reading, name, "mailbox")
    rows = reading.all(f"SELECT * FROM mails WHERE {where} ORDER BY position DESC LIMIT ?", (name, limit))
    return tuple(kept_of(row) for row in reversed(rows))


def _next(reading: Reading, name: str) -> Row | None:
    return reading.one(
        "SELECT * FROM mails WHERE recipient = ? AND partition = 'inbox' AND claim IS NULL"
        f" ORDER BY {BY_RANK} LIMIT 1",
        (name,),
        hold="skip",
    )


def _give_back(writing: Writing, mail_id: str, token: str, epoch: int, *, counts: bool = True) -> None:
    writing.run(
        "UPDATE mails SET claim = NULL, holder = NULL, lease_us = NULL, attempts = attempts - ?"
        " WHERE id = ? AND claim = ? AND epoch = ?",
        (int(not counts), mail_id, token, epoch),
    )


def _forget_archived(writing: Writing, before_us: int) -> None:
    """Delete a limited number of the letters that were archived before this time. The next call deletes more of
    them."""
    writing.run(
        "DELETE FROM mails WHERE position IN (SELECT position FROM mails WHERE archived_at_us < ?"
        " AND id NOT IN (SELECT mail FROM waits UNION SELECT reply FROM waits WHERE reply IS NOT NULL)"
        " ORDER BY archived_at_us LIMIT ?)",
        (before_us, FORGOTTEN_AT_ONCE),
    )
    forget_depths(writing)
