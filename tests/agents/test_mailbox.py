"""Letters: accepted once, handed over once, kept; and waiting for replies without hanging."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from core_doubles import Office, Stream, office

from artoo.agents.mail import rows as mail_rows
from artoo.agents.mail.mailbox import MOST_ATTEMPTS
from artoo.agents.mail.outbox import Outbox
from artoo.agents.mail.request_reply import MailReply
from artoo.agents.patrol.conditions import Looking, NewMail
from artoo.agents.patrol.store import ItemState, PatrolStore
from artoo.agents.storage.database import Database
from artoo.contracts.agents import OPERATOR, Mail, MailMoved, Priority, ReplyMissed
from artoo.contracts.errors import ActorRefused, ClaimLost, MailRefused
from artoo.testing import FakeClock

pytestmark = pytest.mark.usefixtures("engine")


async def partitions(opened: Office, mail_id: str) -> list[str]:
    """Where a letter has been, as the stream tells it."""
    stream = Stream()
    await Outbox(opened.database, stream).drain()
    return [
        record.partition for record in stream.records if isinstance(record, MailMoved) and record.mail_id == mail_id
    ]


async def test_a_letter_goes_from_outbox_to_inbox_to_archive(tmp_path: Path) -> None:
    """It is in each partition once, and all of it is on the stream, its text too."""
    stream = Stream()
    async with office(tmp_path) as opened:
        box = opened.mailbox
        mail = await box.send("ada", "bob", "what is 6 x 7?")
        assert [kept.mail for kept in await box.list("bob", "inbox")] == [mail]
        assert await box.unread("bob") == 1
        claim = await box.take("bob")
        assert claim is not None
        assert await box.take("bob") is None
        await box.archive(claim, "read")
        assert await box.list("bob", "inbox") == ()
        kept = await box.get(mail.id)
        assert (kept.mail, kept.partition, kept.note) == (mail, "archive", "read")
        assert [kept.mail for kept in await box.sent("ada")] == [mail]
        await Outbox(opened.database, stream).drain()
        told = [record for record in stream.records if isinstance(record, Mail | MailMoved)]
        assert told[0] == mail
        assert [record.partition for record in told if isinstance(record, MailMoved)] == [
            "outbox",
            "inbox",
            "archive",
        ]


async def test_letters_for_the_sake_of_letters_come_to_an_end(tmp_path: Path) -> None:
    """Two agents that write to each other over each letter are stopped; answers and the operator are not."""
    async with office(tmp_path) as opened:
        box, names, writer, reader = opened.mailbox, ("ada", "bob"), "", ""
        await box.send(OPERATOR, "bob", "begin")
        for turn in range(1, mail_rows.DEEPEST + 1):
            writer, reader = names[turn % 2], names[(turn + 1) % 2]
            claim = await box.take(writer)
            assert claim is not None
            await box.send(writer, reader, f"letter {turn}")
            await box.archive(claim, "done")
        last = await box.take(reader)
        assert last is not None and last.mail.text == f"letter {mail_rows.DEEPEST}"
        with pytest.raises(MailRefused, match="write to the operator"):
            await box.send(reader, writer, "once more")
        with pytest.raises(MailRefused, match="Answer with what there is"):
            await opened.asking.ask(reader, writer, "and you?")
        await box.send(reader, OPERATOR, "we go round in circles")
        await box.answer(last, "that is all")
        await box.send(reader, writer, "another matter")  # nothing in hand: a beginning
        assert await _depths(opened.database) == mail_rows.DEEPEST
        await opened.database.write(lambda writing: writing.run("DELETE FROM mails"))
        await box.recover()
        assert await _depths(opened.database) == 0


async def _depths(database: Database) -> int:
    return await database.read(
        lambda reading: reading.count("SELECT count(*) FROM marks WHERE name LIKE ?", ("depth%",))
    )


async def test_patrols_that_write_over_each_others_letters_come_to_an_end(tmp_path: Path) -> None:
    """`when: mail` of two agents, each item a letter to the other: what a patrol writes is for a letter's sake too.
    An answer is no new mail."""
    async with office(tmp_path) as opened:
        box, database = opened.mailbox, opened.database
        ends = {name: Looking(name, tmp_path, database, _never) for name in ("ada", "bob")}
        begun = await box.send(OPERATOR, "ada", "begin")
        assert await ends["ada"].mark(NewMail()) == begun.id
        rounds, writer, reader = 0, "ada", "bob"
        with pytest.raises(MailRefused, match="in a row"):
            while rounds < 100:
                while (claim := await box.take(writer)) is not None:
                    await box.answer(claim, "thank you")
                due = await ends[writer].mark(NewMail())
                store = PatrolStore(database, writer)
                await store.put("item", ItemState(None, due, f"patrol-{rounds}"))
                await box.send(writer, reader, f"there is mail ({rounds})")
                await store.put("item", ItemState(None, due))
                rounds, writer, reader = rounds + 1, reader, writer
        assert rounds == mail_rows.DEEPEST


async def _never(check: object) -> bool:
    raise AssertionError(check)


async def test_urgent_letters_come_first_and_old_ones_before_new(tmp_path: Path) -> None:
    """Critical, standard, background; within one in the order of sending."""
    order = [Priority.BACKGROUND, Priority.STANDARD, Priority.CRITICAL, Priority.STANDARD, Priority.CRITICAL]
    async with office(tmp_path) as opened:
        sent = [await opened.mailbox.send("ada", "bob", "x", priority=priority) for priority in order]
        read: list[str] = []
        while (claim := await opened.mailbox.take("bob")) is not None:
            read.append(claim.mail.id)
        assert read == [sent[place].id for place in (2, 4, 1, 3, 0)]


@pytest.mark.parametrize(
    ("sender", "recipient", "text", "says"),
    [
        ("ada", "zoe", "x", "Nobody is called 'zoe'.*known: operator, ada, bob"),
        ("zoe", "ada", "x", "Nobody is called 'zoe', so there is no sender"),
        ("ada", "bob", " ", "empty"),
        ("ada", "bob", "x" * 10_000_000, "10,000,000 characters, at most 100,000 .*name that file"),
    ],
)
async def test_what_cannot_be_delivered_is_refused_at_sending(
    tmp_path: Path, sender: str, recipient: str, text: str, says: str
) -> None:
    """Unknown people, empty letters and 10 MB: the sender is told at once, and nothing is kept."""
    async with office(tmp_path) as opened:
        with pytest.raises(MailRefused, match=says):
            await opened.mailbox.send(sender, recipient, text)
        assert await opened.mailbox.sent("ada") == ()


async def test_a_letter_sent_twice_under_one_name_is_sent_once(tmp_path: Path) -> None:
    """Who does not know whether it was accepted may send it again."""
    async with office(tmp_path) as opened:
        first = await opened.mailbox.send("ada", "bob", "x", mail_id="letter-1")
        assert await opened.mailbox.send("ada", "bob", "x", mail_id="letter-1") == first
        assert await opened.mailbox.unread("bob") == 1


async def test_a_full_inbox_keeps_letters_in_the_outbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are delivered as room comes, urgent ones first; a full outbox refuses with the reason."""
    monkeypatch.setattr(mail_rows, "MOST_UNREAD", 2)
    monkeypatch.setattr(mail_rows, "MOST_WAITING", 2)
    async with office(tmp_path) as opened:
        box = opened.mailbox
        for _ in range(2):
            await box.send("ada", "bob", "x")
        late = await box.send("ada", "bob", "late")
        urgent = await box.send("ada", "bob", "urgent", priority=Priority.CRITICAL)
        with pytest.raises(MailRefused, match=r"outbox is full.*bob must read"):
            await box.send("ada", "bob", "too much")
        assert [kept.mail.id for kept in await box.list("ada", "outbox")] == [late.id, urgent.id]
        claim = await box.take("bob")
        assert claim is not None
        await box.archive(claim)
        assert await partitions(opened, urgent.id) == ["outbox", "inbox"]
        assert (await box.get(late.id)).partition == "outbox"


async def test_a_dead_reader_gives_its_letter_back(tmp_path: Path) -> None:
    """Somebody else reads it; the dead reader's claim counts no more; ten dead readers are enough."""
    async with office(tmp_path) as opened:
        box = opened.mailbox
        mail = await box.send("ada", "bob", "x")
        first = await box.take("bob")
        assert first is not None
        assert await box.recover(lambda _: False) == ()
        assert await box.recover(lambda _: True) == (mail.id,)
        second = await box.take("bob")
        assert second is not None
        assert second.attempts == 2
        for call in (box.archive(first), box.renew(first)):
            with pytest.raises(ClaimLost):
                await call
        with pytest.raises(ClaimLost):
            await box.answer(first, "late")
        for _ in range(MOST_ATTEMPTS - 1):
            await box.recover(lambda _: True)
            await box.take("bob")
        kept = await box.get(mail.id)
        assert kept.partition == "archive"
        assert "given up" in kept.note


async def test_a_letter_that_was_given_back_is_not_given_up(tmp_path: Path) -> None:
    """While the model is away its reader gives a letter back again and again, and nobody dies of it."""
    async with office(tmp_path, FakeClock()) as opened:
        box = opened.mailbox
        mail = await box.send("ada", "bob", "x")
        for _ in range(MOST_ATTEMPTS + 1):
            claim = await box.take("bob")
            assert claim is not None and claim.attempts == 1
            await box.release(claim)
        await box.take("bob")
        assert await box.recover(lambda _: True) == (mail.id,)
        assert (await box.get(mail.id)).partition == "inbox"


async def test_the_archive_keeps_ninety_days(tmp_path: Path) -> None:
    """Letters that were dealt with go after that; unread ones stay however old they are."""
    clock = FakeClock()
    async with office(tmp_path, clock) as opened:
        box = opened.mailbox
        dealt_with, unread = [await box.send("ada", "bob", "x") for _ in range(2)]
        claim = await box.take("bob", dealt_with.id)
        assert claim is not None
        await box.archive(claim)
        clock.advance(90 * 86_400)
        await box.recover()
        assert (await box.get(dealt_with.id)).partition == "archive"
        clock.advance(1)
        await box.recover()
        assert [kept.mail.id for kept in await box.sent("ada")] == [unread.id]


async def test_an_answer_is_sent_with_the_archiving_or_not_at_all(tmp_path: Path) -> None:
    """One transaction: a second answer under the same claim is refused, so nobody gets two."""
    async with office(tmp_path) as opened:
        box = opened.mailbox
        mail = await box.send("ada", "bob", "6 x 7?", priority=Priority.CRITICAL)
        claim = await box.take("bob")
        assert claim is not None
        reply = await box.answer(claim, "42")
        with pytest.raises(ClaimLost):
            await box.answer(claim, "42")
        assert (reply.recipient, reply.in_reply_to, reply.priority) == ("ada", mail.id, Priority.CRITICAL)
        assert await box.unread("ada") == 1


async def test_a_letter_is_read_by_its_recipient_only(tmp_path: Path) -> None:
    """Somebody else's, one that is being read, an archived one, a paused reader: each is refused."""
    async with office(tmp_path) as opened:
        box = opened.mailbox
        mail = await box.send("ada", "bob", "x")
        with pytest.raises(MailRefused, match="bob's, not cyd's"):
            await box.take("cyd", mail.id)
        with pytest.raises(MailRefused, match="no letter nothing"):
            await box.take("bob", "nothing")
        claim = await box.take("bob", mail.id)
        assert claim is not None
        with pytest.raises(ClaimLost, match="another process"):
            await box.take("bob", mail.id)
        await box.release(claim)
        await opened.registry.pause("bob", OPERATOR)
        with pytest.raises(ActorRefused, match="paused"):
            await box.take("bob")


async def test_a_reply_ends_the_wait_at_once(tmp_path: Path) -> None:
    """Long before the next pulse; who waited has it, and it is not in the inbox a second time."""
    clock = FakeClock()
    async with office(tmp_path, clock) as opened, asyncio.TaskGroup() as group:
        asking = group.create_task(opened.asking.ask("ada", "bob", "6 x 7?"))
        await clock.wait_for_sleepers()
        claim = await opened.mailbox.take("bob")
        assert claim is not None
        assert claim.mail.requires_reply
        await opened.mailbox.answer(claim, "42")
        reply = await asking
        assert (reply.text, reply.missed) == ("42", None)
        assert clock.monotonic() == 0
        assert await opened.mailbox.unread("ada") == 0
        assert reply.mail is not None
        assert await partitions(opened, reply.mail.id) == ["outbox", "inbox", "archive"]


async def test_no_reply_gives_the_fallback_after_the_timeout(tmp_path: Path) -> None:
    """At 30 s, with a report; a late answer is a letter like any other."""
    clock, stream = FakeClock(), Stream()
    async with office(tmp_path, clock) as opened, asyncio.TaskGroup() as group:
        asking = group.create_task(opened.asking.ask("ada", "bob", "6 x 7?", fallback="unknown"))
        while not asking.done():
            await until_asleep(clock, asking)
            clock.advance(1)
        assert asking.result() == MailReply("unknown", missed="timeout")
        assert 30 <= clock.monotonic() <= 31
        await Outbox(opened.database, stream).drain()
        missed = [record for record in stream.records if isinstance(record, ReplyMissed)]
        assert [(record.waiting, record.recipient, record.why) for record in missed] == [("ada", "bob", "timeout")]
        claim = await opened.mailbox.take("bob")
        assert claim is not None
        await opened.mailbox.answer(claim, "42")
        assert await opened.mailbox.unread("ada") == 1


async def until_asleep(clock: FakeClock, task: asyncio.Task[MailReply] | asyncio.Task[bool]) -> None:
    """Returns when the task sleeps on the clock, or is done."""
    sleeping = asyncio.ensure_future(clock.wait_for_sleepers())
    await asyncio.wait([sleeping, task], return_when=asyncio.FIRST_COMPLETED)
    sleeping.cancel()


async def test_a_circle_of_waiting_agents_is_broken_with_a_report(tmp_path: Path) -> None:
    """ada waits for bob, bob for cyd; cyd asking ada does not wait: its letter is sent, the circle named."""
    clock, stream = FakeClock(), Stream()
    async with office(tmp_path, clock) as opened, asyncio.TaskGroup() as group:
        waiting = [group.create_task(opened.asking.ask(*pair, "?")) for pair in (("ada", "bob"), ("bob", "cyd"))]
        await clock.wait_for_sleepers(2)
        reply = await opened.asking.ask("cyd", "ada", "?", fallback="go on")
        assert reply == MailReply("go on", missed="cycle", cycle=("cyd", "ada", "bob"))
        assert (await opened.asking.ask("dot", "dot", "me?")).cycle == ("dot",)
        assert await opened.mailbox.unread("ada") == 1
        await Outbox(opened.database, stream).drain()
        cycles = [record.cycle for record in stream.records if isinstance(record, ReplyMissed)]
        assert cycles == [("cyd", "ada", "bob"), ("dot",)]
        for task in waiting:
            task.cancel()


async def test_a_wait_that_is_cancelled_is_no_longer_in_the_way(tmp_path: Path) -> None:
    """Its edge is gone at once: the other may wait for who waited."""
    clock = FakeClock()
    async with office(tmp_path, clock) as opened, asyncio.TaskGroup() as group:
        first = group.create_task(opened.asking.ask("ada", "bob", "?"))
        await clock.wait_for_sleepers()
        first.cancel()
        await asyncio.wait([first])
        second = group.create_task(opened.asking.ask("bob", "ada", "?"))
        await clock.wait_for_sleepers()
        claim = await opened.mailbox.take("ada")
        assert claim is not None
        await opened.mailbox.answer(claim, "yes")
        assert (await second).text == "yes"


async def test_the_operator_waits_in_no_circle(tmp_path: Path) -> None:
    """A person answers when they like, also while an agent waits for them."""
    clock = FakeClock()
    async with office(tmp_path, clock) as opened, asyncio.TaskGroup() as group:
        agent = group.create_task(opened.asking.ask("ada", OPERATOR, "may I?"))
        person = group.create_task(opened.asking.ask(OPERATOR, "ada", "well?"))
        await clock.wait_for_sleepers(2)
        for name, answer in ((OPERATOR, "yes"), ("ada", "fine")):
            claim = await opened.mailbox.take(name)
            assert claim is not None
            await opened.mailbox.answer(claim, answer)
        assert ((await agent).text, (await person).text) == ("yes", "fine")


async def test_a_reply_whose_waiter_died_is_a_letter_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that asked was killed: its agent finds the answer in the inbox."""
    clock, killed = FakeClock(), asyncio.Event()

    async def hears_nothing(*_: object) -> bool:
        killed.set()
        return await asyncio.Event().wait()

    async with office(tmp_path, clock, holder="dead") as dying:
        monkeypatch.setattr(dying.wake, "wait", hears_nothing)
        task = asyncio.ensure_future(dying.asking.ask("ada", "bob", "?"))
        await killed.wait()
        async with office(tmp_path, clock, holder="alive", team=False) as opened:
            claim = await opened.mailbox.take("bob")
            assert claim is not None
            reply = await opened.mailbox.answer(claim, "42")
            assert await opened.mailbox.unread("ada") == 0
            await opened.mailbox.recover(lambda holder: holder == "dead")
            again = await opened.mailbox.take("ada")
            assert again is not None
            assert again.mail == reply
        task.cancel()
        await asyncio.wait([task])


async def test_mail_of_another_process_wakes_its_recipient(tmp_path: Path) -> None:
    """Seen a second later, with the pulse two minutes away; what is written to others wakes nobody."""
    clock = FakeClock()
    async with (
        office(tmp_path, clock) as opened,
        office(tmp_path, clock, holder="other", team=False) as other,
        asyncio.TaskGroup() as group,
    ):
        mark = await opened.wake.mark("bob")
        waiting = group.create_task(opened.wake.wait("bob", mark, 120))
        await clock.wait_for_sleepers()
        await other.mailbox.send("ada", "cyd", "not for bob")
        clock.advance(1)
        await clock.wait_for_sleepers()
        assert not waiting.done()
        await other.mailbox.send("ada", "bob", "for bob")
        # PostgreSQL may have told it by now: then nobody sleeps any more.
        await until_asleep(clock, waiting)
        clock.advance(1)
        assert await waiting
        assert clock.monotonic() == 2


async def test_who_waits_in_vain_is_told_so(tmp_path: Path) -> None:
    """After the time that was given, and not before."""
    async with office(tmp_path, FakeClock(auto_advance=True)) as opened:
        assert not await opened.wake.wait("bob", await opened.wake.mark("bob"), 5)
