"""Convert database rows to letters and move them in SQL, with the limits on unread letters and on reply depth."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from artoo.agents.storage.transaction import Reading, Row, Writing, made, marked, storable
from artoo.contracts.agents import OPERATOR, Mail, MailMoved, Partition
from artoo.contracts.errors import ActorRefused, ClaimLost, MailRefused
from artoo.contracts.roles import Role

LONGEST_NOTE = 1_000
"""Maximum number of characters of the note stored when a letter is archived."""

DEEPEST = 8
"""Maximum length of a chain of letters in which each was written while its writer handled the previous one. Without
this limit, agents could write to each other endlessly."""

_DEPTH = "depth: "

MOST_UNREAD, MOST_WAITING = 1_000, 1_000
"""Maximum number of letters in an inbox, and in an outbox. If an inbox is full, further letters stay in the
outboxes of their senders."""

PICK_UP_US = 60_000_000
"""Number of µs for which a reply stays reserved after the wait has ended. After that, it becomes a normal
letter."""

_MOST_NAMED = 20
"""Maximum number of names in an error message."""

BY_RANK = "CASE priority WHEN 'critical' THEN 0 WHEN 'standard' THEN 1 ELSE 2 END, position"
"""The order of delivery in SQL, which is by priority and then by arrival."""


@dataclass(frozen=True, slots=True)
class MailClaim:
    """The right of a process to handle a letter, until the letter is archived or the lease expires. `token` and
    `epoch` prove that the caller holds the claim.

    `attempts`: how often the letter was delivered, including this time.
    """

    mail: Mail
    token: str
    agent: str
    attempts: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A letter, and the partition in which it is. `note`: how it was handled. `held`: true if a process has claimed
    it."""

    mail: Mail
    partition: Partition
    note: str
    held: bool


def reply_claim(mail_id: str) -> str:
    """Return the token with which the reply to a letter is reserved for the agent that waits for it."""
    return f"reply to {mail_id}"


def kept_of(row: Row) -> Kept:
    """Convert a row of `mails` to a letter with its partition."""
    return Kept(made(Mail, row), row["partition"], row["note"], row["claim"] is not None)


def find_mail(reading: Reading, mail_id: str) -> Row:
    """Return the row of a letter. Raises MailRefused if it does not exist."""
    row = reading.one("SELECT * FROM mails WHERE id = ?", (mail_id,), hold="wait")
    if row is None:
        raise MailRefused(f"There is no letter {mail_id}; `artoo mail list` shows those there are.")
    return row


def held_mail(reading: Reading, claim: MailClaim) -> Mail:
    """Return the letter under this claim. Raises ClaimLost if the claim has ended."""
    row = find_mail(reading, claim.mail.id)
    if (row["claim"], row["epoch"], row["partition"]) != (claim.token, claim.epoch, "inbox"):
        raise ClaimLost(
            f"Letter {claim.mail.id} is no longer yours: its claim ran out. Stop working on it;"
            " somebody else deals with it."
        )
    return made(Mail, row)


def check_address(reading: Reading, name: str, what: str, gone: Collection[str] = ()) -> None:
    """Raise MailRefused unless `name` is the operator, an agent, or a foreign agent to which letters can be
    written.

    `gone`: names that the error message must not suggest.
    """
    if name == OPERATOR or reading.one("SELECT 1 FROM agents WHERE name = ?", (name,)) is not None:
        return
    raise MailRefused(f"Nobody is called {name!r}, so there is no {what}; {_known(reading, gone)}.")


def check_recipient(reading: Reading, name: str, gone: Collection[str] = ()) -> None:
    """Raise MailRefused if no one would read letters to `name`. `gone`: the agents whose folders do not exist any
    more."""
    if name in gone:
        raise MailRefused(
            f"Nobody reads letters to {name}, whose folder is gone (artoo agent list says what can be done);"
            f" {_known(reading, gone)}."
        )
    check_address(reading, name, "recipient", gone)
    if reading.one("SELECT 1 FROM agents WHERE name = ? AND retired", (name,)) is not None:
        raise MailRefused(f"Nobody reads letters to {name}, who is retired; {_known(reading, gone)}.")


def _known(reading: Reading, gone: Collection[str]) -> str:
    known = reading.names("SELECT name FROM agents WHERE NOT retired ORDER BY name")
    names = [name for name in known if name not in gone]
    return f"known: {', '.join([OPERATOR, *names[:_MOST_NAMED]])}"


def check_reader(reading: Reading, name: str) -> None:
    """Raise ActorRefused if `name` may not handle mail now, because it is paused, stopped or unknown."""
    if name == OPERATOR:
        return
    row = reading.one("SELECT paused, stopped FROM agents WHERE name = ?", (name,))
    idle = "there is no such agent" if row is None else row["stopped"] or ("it is paused" if row["paused"] else "")
    if idle:
        raise ActorRefused(f"Agent {name} may not read mail: {idle}.")


def post(writing: Writing, mail: Mail, gone: Collection[str] = ()) -> None:
    """Store a letter in the outbox of its sender, and deliver it if there is room. Raises MailRefused.

    `gone`: see `check_recipient`.
    """
    check_address(writing, mail.sender, "sender")
    check_recipient(writing, mail.recipient, gone)
    waiting = writing.count("SELECT count(*) FROM mails WHERE sender = ? AND partition = 'outbox'", (mail.sender,))
    if waiting >= MOST_WAITING:
        raise MailRefused(
            f"{mail.sender}'s outbox is full: {waiting} letters wait for room in their inboxes;"
            f" {mail.recipient} must read some first."
        )
    _note_depth(writing, mail)
    letter = mail.model_dump(exclude={"sent_at"})
    writing.insert("mails", **letter, sent_at_us=writing.now_us, partition="outbox", queued_us=writing.steady_us)
    writing.emit(Role.MAILBOX, mail.id, mail)
    # The letter is published only once with its text. Later records of the same letter do not contain the text.
    record_mail(writing, mail, "outbox")
    if not _expected(writing, mail):
        deliver(writing, mail.recipient)


def _note_depth(writing: Writing, mail: Mail) -> None:
    """Record the depth of a letter, which is one more than the depth of the letter that caused it. Raises
    MailRefused if it is more than `DEEPEST`.

    An agent handles one item at a time. The cause is therefore the letter that the writer is handling, or the
    letter that made an item of its patrol due. Answers, and letters to or from the operator, are not limited.
    """
    if mail.in_reply_to is not None or OPERATOR in (mail.sender, mail.recipient):
        return
    held = writing.names(
        "SELECT id FROM mails WHERE recipient = ? AND in_reply_to IS NULL AND (partition = 'inbox' AND claim IS NOT"
        " NULL OR id IN (SELECT seen FROM patrols WHERE agent = ? AND open_key IS NOT NULL))",
        (mail.sender, mail.sender),
    )
    depth = max((1 + int(marked(writing, f"{_DEPTH}{letter}") or 0) for letter in held), default=0)
    if depth > DEEPEST:
        raise MailRefused(
            f"This letter would be the {depth}th in a row that agents write over one another's letters; at most"
            f" {DEEPEST} are sent. Answer with what there is, or write to the operator."
        )
    if depth:
        writing.mark(f"{_DEPTH}{mail.id}", str(depth))


def forget_depths(writing: Writing) -> None:
    """Delete the depths of letters that no longer exist."""
    writing.run(
        "DELETE FROM marks WHERE name LIKE ? AND substr(name, ?) NOT IN (SELECT id FROM mails)",
        (f"{_DEPTH}%", len(_DEPTH) + 1),
    )


def _expected(writing: Writing, mail: Mail) -> bool:
    """Reserve a reply for the agent that waits for it, even if the inbox of that agent is full. Returns True if an
    agent waits for this reply."""
    if mail.in_reply_to is None:
        return False
    find_mail(writing, mail.in_reply_to)
    wait = writing.one(
        "SELECT * FROM waits WHERE mail = ? AND waiting = ? AND recipient = ? AND reply IS NULL",
        (mail.in_reply_to, mail.recipient, mail.sender),
        hold="wait",
    )
    if wait is None:
        return False
    writing.change("waits", mail.in_reply_to, key="mail", reply=mail.id)
    claim, until = reply_claim(mail.in_reply_to), wait["until_us"] + PICK_UP_US
    writing.change("mails", mail.id, partition="inbox", claim=claim, holder=wait["holder"], lease_us=until)
    record_mail(writing, mail, "inbox")
    writing.arrived(mail.recipient)
    return True


def deliver(writing: Writing, recipient: str) -> int:
    """Move letters for `recipient` from the outboxes to its inbox, as long as there is room. Returns their
    number."""
    unread = writing.count("SELECT count(*) FROM mails WHERE recipient = ? AND partition = 'inbox'", (recipient,))
    rows = writing.all(
        f"SELECT * FROM mails WHERE recipient = ? AND partition = 'outbox' ORDER BY {BY_RANK} LIMIT ?",
        (recipient, max(0, MOST_UNREAD - unread)),
        # If another transaction has locked a letter, that transaction delivers it.
        hold="skip",
    )
    for row in rows:
        writing.change("mails", row["id"], partition="inbox")
        record_mail(writing, made(Mail, row), "inbox")
    if rows:
        writing.arrived(recipient)
    return len(rows)


def file_away(writing: Writing, mail: Mail, note: str) -> None:
    """Move a letter from the inbox to the archive, and deliver the next letter."""
    note = storable(note)[:LONGEST_NOTE]
    writing.change(
        "mails", mail.id, partition="archive", archived_at_us=writing.now_us, note=note, claim=None, holder=None,
        lease_us=None,
    )  # fmt: skip
    record_mail(writing, mail, "archive", note)
    deliver(writing, mail.recipient)


def hand_over(writing: Writing, row: Row, token: str, agent: str, lease_us: int) -> MailClaim:
    """Claim a letter."""
    attempts, epoch = row["attempts"] + 1, row["epoch"] + 1
    until = writing.steady_us + lease_us
    writing.change(
        "mails", row["id"], epoch=epoch, claim=token, holder=writing.holder, lease_us=until, attempts=attempts
    )
    return MailClaim(made(Mail, row), token, agent, attempts, epoch)


def record_mail(writing: Writing, mail: Mail, partition: Partition, note: str = "") -> None:
    """Add a record for the stream that the letter has arrived in a partition."""
    writing.emit(
        Role.MAILBOX,
        mail.id,
        MailMoved(
            mail_id=mail.id,
            sender=mail.sender,
            recipient=mail.recipient,
            priority=mail.priority,
            partition=partition,
            at=writing.now,
            note=note,
        ),
    )
