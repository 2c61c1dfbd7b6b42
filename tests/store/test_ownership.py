"""A role for each machine: PostgreSQL itself keeps the letters of an agent from machines where it does not sit."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from artoo.agents.board.claim_holders import this_process
from artoo.agents.identity.registry import Registry
from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.outbox import Outbox
from artoo.agents.storage.database import Database
from artoo.cluster.cluster import open_store
from artoo.cluster.machines import Seats
from artoo.cluster.migrate import team as team_part
from artoo.contracts.agents import OPERATOR, Mail, TrustLevel
from artoo.contracts.base import Contract
from artoo.contracts.errors import ActivityStoreError, MailRefused, StoreRefused
from artoo.contracts.roles import Role
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.store.address import StoreAddress, parse
from artoo.store.connecting import connect

ROLES = {"laptop": "artoo_worker", "server": "artoo_worker", "desk": "artoo_operator", "looker": "artoo_reader"}
SEATED = {"ada": "laptop", "bob": "server"}


@dataclass(frozen=True)
class Team:
    """A store with a login role for each machine; ada sits at the laptop, bob on the server."""

    owner: StoreAddress

    def address(self, role: str) -> StoreAddress:
        return parse(self.owner.url.replace("postgres@", f"{role}@"))

    async def at(self, role: str) -> Database:
        """The books, as a process of this machine has them."""
        return await open_store(self.address(role), holder=this_process(role))


@pytest.fixture
def team(store: StoreAddress) -> Generator[Team]:
    """Roles are of the whole server: they go again."""
    with connect(store) as connection:
        for role, group in ROLES.items():
            connection.execute(f"CREATE ROLE {role} LOGIN IN ROLE {group}".encode())
    try:
        yield Team(store)
    finally:
        with connect(store) as connection:
            for role in ROLES:
                connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


async def seated(team: Team) -> dict[str, Mail]:
    """Both agents sit, and the operator has written to each; the letters."""
    async with await open_store(team.owner, holder="office/1/2/3/4") as database:
        for agent in SEATED:
            await Registry(database).register(agent, OPERATOR, sha256="0" * 64, trust=TrustLevel.SENIOR)
        for agent, role in SEATED.items():
            async with await team.at(role) as own:
                assert await Seats(own).take(agent)
        mailbox = mails(database)
        return {agent: await mailbox.send(OPERATOR, agent, f"secret of {agent}") for agent in SEATED}


def mails(database: Database) -> Mailbox:
    return Mailbox(database, SystemClock(), UuidIds())


async def test_a_machine_neither_reads_nor_consumes_letters_of_anothers_agents(team: Team) -> None:
    """By artoo's functions and by plain SQL: they are not there for it, and nothing that it does reaches them."""
    letters = await seated(team)
    async with await team.at("server") as database:
        assert await mails(database).take("ada") is None
        with pytest.raises(MailRefused, match="no letter"):
            await mails(database).take("ada", letters["ada"].id)
        with pytest.raises(MailRefused, match="no letter"):
            await mails(database).get(letters["ada"].id)
    with connect(team.address("server")) as connection:
        seen = connection.execute("SELECT recipient, text FROM mails").fetchall()
        assert seen == [{"recipient": "bob", "text": "secret of bob"}]
        assert connection.execute("SELECT payload FROM events WHERE payload LIKE '%secret%'").fetchall() == []
        for change in (
            "UPDATE mails SET claim = 'mine', epoch = epoch + 1 WHERE recipient = 'ada'",
            "UPDATE mails SET partition = 'archive' WHERE text <> 'secret of bob'",
            "DELETE FROM mails",
        ):
            assert connection.execute(change.encode()).rowcount == 0
    async with await team.at("laptop") as database:
        claim = await mails(database).take("ada")
        assert claim is not None and (claim.mail.text, claim.epoch) == ("secret of ada", 1)
        await mails(database).answer(claim, "here it is")


async def test_letters_go_from_machine_to_machine(team: Team) -> None:
    """What ada writes to bob is delivered, answered and read, though neither machine sees the other's mail."""
    await seated(team)
    async with await team.at("laptop") as laptop, await team.at("server") as server:
        sent = await mails(laptop).send("ada", "bob", "how is it?")
        claim = await mails(server).take("bob", sent.id)
        assert claim is not None
        await mails(server).answer(claim, "fine")
        reply = await mails(laptop).take("ada", None)
        while reply is not None and reply.mail.sender != "bob":
            await mails(laptop).archive(reply)
            reply = await mails(laptop).take("ada")
        assert reply is not None and reply.mail.text == "fine"
        assert await mails(laptop).recover() == ()


async def test_nobody_writes_in_anothers_name_or_changes_what_was_said(team: Team) -> None:
    """A worker sends as agents that sit with it, and no letter's words, sender or recipient can be altered."""
    await seated(team)
    async with await team.at("server") as database:
        for sender in ("ada", OPERATOR):
            with pytest.raises(StoreRefused, match="row-level security"):
                await mails(database).send(sender, "bob", "do as I say")
    with connect(team.address("server")) as connection:
        for column in ("text", "sender", "recipient", "id"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"UPDATE mails SET {column} = 'x' WHERE recipient = 'bob'".encode())


async def test_a_seat_is_taken_over_when_it_is_free_and_the_letters_with_it(team: Team) -> None:
    """As long as its lease holds nobody else gets it; then it names the other machine's role, which reads on."""
    await seated(team)
    async with await team.at("laptop") as laptop, await team.at("server") as server:
        assert not await Seats(server).take("ada")
        with connect(team.address("server")) as connection:
            stolen = "UPDATE seats SET db_role = 'server', holder = 'server/1/2/3/4' WHERE agent = 'ada'"
            assert connection.execute(stolen.encode()).rowcount == 0
        with connect(team.owner) as connection:
            connection.execute("UPDATE seats SET lease_us = 0")
            connection.execute("ALTER TABLE seats DISABLE TRIGGER seats_name_their_role")
            connection.execute("UPDATE seats SET db_role = 'laptop' WHERE agent = 'ada'")
            connection.execute("ALTER TABLE seats ENABLE TRIGGER seats_name_their_role")
        assert await Seats(server).take("ada")
        assert await mails(laptop).take("ada") is None, "the letters went with the seat"
        claim = await mails(server).take("ada")
        assert claim is not None and claim.mail.text == "secret of ada"


async def test_the_owner_says_who_may_take_a_seat(team: Team) -> None:
    """An agent with a rule sits nowhere else, free seat or not; no worker writes rules."""
    with connect(team.owner) as connection:
        connection.execute("INSERT INTO seat_rules VALUES ('ada', 'laptop')")
    async with await open_store(team.owner, holder="office/1/2/3/4") as database:
        await Registry(database).register("ada", OPERATOR, sha256="0" * 64)
    async with await team.at("laptop") as laptop, await team.at("server") as server:
        with pytest.raises(StoreRefused, match="row-level security"):
            await Seats(server).take("ada")
        assert await Seats(laptop).take("ada")
        assert await Seats(server).take("bob"), "an agent without a rule sits anywhere"
    with connect(team.address("server")) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("INSERT INTO seat_rules VALUES ('ada', 'server')")


async def test_the_operators_machine_sees_all_and_a_reader_changes_nothing(team: Team) -> None:
    """`artoo mail` works where the operator sits, for every mailbox; a reader reads."""
    letters = await seated(team)
    async with await team.at("desk") as desk:
        assert (await mails(desk).get(letters["ada"].id)).mail.text == "secret of ada"
        await mails(desk).send(OPERATOR, "bob", "one more")
        published: list[Contract] = []

        def publish(sender: Role, subject: str, payload: Contract) -> None:
            published.append(payload)

        await Outbox(desk, publish, is_dead=lambda holder: True).drain()
        assert {one.text for one in published if isinstance(one, Mail)} >= {"secret of ada", "one more"}
    with connect(team.address("looker")) as connection:
        assert len(connection.execute("SELECT text FROM mails").fetchall()) == 3
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE mails SET claim = 'x'")


async def test_a_worker_does_not_export_what_it_is_shown_as_if_it_were_all(team: Team, tmp_path: Path) -> None:
    """Counting and moving a store by a role that sees some of the letters is refused."""
    await seated(team)
    with pytest.raises(ActivityStoreError, match="row-level security"):
        team_part(tmp_path / "a.db", "laptop").in_store(team.address("laptop"))
    assert team_part(tmp_path / "a.db", "laptop").in_store(team.owner)
