"""Ask another agent and wait for the reply, and refuse circular waits.

If no answer comes in time, the fallback is the result. Reference: SPEC section 11.

The database records for all processes which agent waits for which other agent. If a question would close a circle
of waiting agents, it is sent, but no answer is awaited. The circle is reported.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.rows import file_away, find_mail, post, reply_claim
from artoo.agents.mail.wake import Wake
from artoo.agents.storage.database import Database
from artoo.agents.storage.monotonic_clock import seconds_us
from artoo.agents.storage.transaction import Reading, Writing, made
from artoo.contracts.agents import OPERATOR, Mail, Priority, ReplyMissed
from artoo.contracts.roles import Role
from artoo.ports.clock import Clock

REPLY_SECONDS = 30.0
"""Number of seconds that an agent waits for a reply by default."""


@dataclass(frozen=True, slots=True)
class MailReply:
    """The result of a question. It is the text of the answer, or the fallback with the reason. `cycle`: the agents
    in the circle, if there is one."""

    text: str
    mail: Mail | None = None
    missed: Literal["timeout", "cycle"] | None = None
    cycle: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MailRequests:
    """Sends questions and waits for their answers."""

    database: Database
    mailbox: Mailbox
    wake: Wake
    clock: Clock

    async def ask(
        self,
        sender: str,
        recipient: str,
        text: str,
        *,
        priority: Priority = Priority.STANDARD,
        seconds: float = REPLY_SECONDS,
        fallback: str = "",
    ) -> MailReply:
        """Send a letter and wait at most `seconds` for its answer. An answer that comes later is delivered as a
        normal letter.

        Raises MailRefused if the letter cannot be sent.
        """
        mail = self.mailbox.letter(sender, recipient, text, priority=priority, requires_reply=True)
        gone = await self.mailbox.gone()
        end = self.clock.monotonic() + seconds
        # This is read before the letter is sent, so that an immediate answer is not missed.
        mark = await self.wake.mark(sender)
        cycle = await self.database.write(lambda writing: _pose(writing, mail, seconds, gone))
        if cycle:
            return MailReply(fallback, missed="cycle", cycle=cycle)
        try:
            while (left := end - self.clock.monotonic()) > 0:
                await self.wake.wait(sender, mark, left)
                mark = await self.wake.mark(sender)
                if await self.database.read(lambda reading: _answered(reading, mail.id)):
                    break
            reply = await self.database.write(lambda writing: _finish(writing, mail, report=True))
        except BaseException:
            await self.database.write(lambda writing: _finish(writing, mail, report=False))
            raise
        return MailReply(fallback, missed="timeout") if reply is None else MailReply(reply.text, reply)


def circle(reading: Reading, sender: str, recipient: str) -> tuple[str, ...]:
    """Return the agents of the circle that would arise if `sender` waited for `recipient`. `sender` is the first of
    them.

    The operator is never part of a circle, because a person can answer at any time.
    """
    if OPERATOR in (sender, recipient):
        return ()
    waits = reading.all(
        "SELECT waiting, recipient FROM waits WHERE reply IS NULL AND until_us > ?", (reading.steady_us,)
    )
    paths: dict[str, tuple[str, ...]] = {recipient: (sender, recipient)}
    reached = [recipient]
    while reached:
        name = reached.pop()
        if name == sender:
            return paths[name][:-1]
        for row in waits:
            if row["waiting"] == name and row["recipient"] not in paths:
                paths[row["recipient"]] = (*paths[name], row["recipient"])
                reached.append(row["recipient"])
    return ()


def _pose(writing: Writing, mail: Mail, seconds: float, gone: Collection[str]) -> tuple[str, ...]:
    """Send the question and record the wait. If the wait would close a circle, report the circle and return it."""
    # Two questions at the same time could close a circle that neither of their transactions sees.
    writing.alone("waits")
    cycle = circle(writing, mail.sender, mail.recipient)
    if cycle:
        post(writing, mail.model_copy(update={"requires_reply": False}), gone)
        _report(writing, mail, "cycle", cycle)
        return cycle
    post(writing, mail, gone)
    until = writing.steady_us + seconds_us(seconds)
    writing.insert(
        "waits", mail=mail.id, waiting=mail.sender, recipient=mail.recipient, holder=writing.holder, until_us=until
    )
    return ()


def _answered(reading: Reading, mail_id: str) -> bool:
    row = reading.one("SELECT reply FROM waits WHERE mail = ?", (mail_id,))
    return row is None or row["reply"] is not None


def _finish(writing: Writing, mail: Mail, *, report: bool) -> Mail | None:
    """End the wait. If `report` is true, return the answer, or report that there is none.

    If it is false, an answer that has arrived becomes a normal letter.
    """
    row = writing.one("SELECT reply FROM waits WHERE mail = ?", (mail.id,), hold="wait")
    writing.run("DELETE FROM waits WHERE mail = ?", (mail.id,))
    reply = None if row is None else _reserved(writing, row["reply"], mail.id)
    if reply is None:
        if report:
            _report(writing, mail, "timeout", ())
        return None
    if not report:
        writing.change("mails", reply.id, claim=None, holder=None, lease_us=None)
        writing.arrived(reply.recipient)
        return None
    file_away(writing, reply, f"the reply to {mail.id}")
    return reply


def _reserved(reading: Reading, reply_id: str | None, mail_id: str) -> Mail | None:
    """Return the answer that was reserved. Return None if there is none, or if its reservation expired and another
    reader got it."""
    if reply_id is None:
        return None
    row = find_mail(reading, reply_id)
    return made(Mail, row) if row["claim"] == reply_claim(mail_id) else None


def _report(writing: Writing, mail: Mail, why: Literal["timeout", "cycle"], cycle: tuple[str, ...]) -> None:
    missed = ReplyMissed(
        mail_id=mail.id, waiting=mail.sender, recipient=mail.recipient, why=why, cycle=cycle, at=writing.now
    )
    writing.emit(Role.MAILBOX, mail.id, missed)
