"""A board, a mailbox and a team on a real database in a directory of their own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from engines import open_books

from artoo.agents.board.board import Board
from artoo.agents.board.next_task import Allocation
from artoo.agents.identity.registry import Registry
from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.request_reply import MailRequests
from artoo.agents.mail.wake import Wake
from artoo.agents.storage.database import Database
from artoo.contracts.agents import OPERATOR, TrustLevel
from artoo.contracts.base import Contract
from artoo.contracts.roles import Role
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.testing import FakeClock, SequentialIds

TEAM = {
    "ada": TrustLevel.PROBATION,
    "bob": TrustLevel.STANDARD,
    "cyd": TrustLevel.TRUSTED,
    "dot": TrustLevel.SENIOR,
    "eve": TrustLevel.SENIOR,
}


class Stream:
    """What was published, in order."""

    def __init__(self) -> None:
        self.records: list[Contract] = []

    def __call__(self, sender: Role, subject: str, payload: Contract) -> None:
        assert subject
        self.records.append(payload)


@dataclass(frozen=True, slots=True)
class Office:
    """Everything that the tests of this room use, on one database."""

    database: Database
    registry: Registry
    board: Board
    mailbox: Mailbox
    wake: Wake
    asking: MailRequests
    allocation: Allocation


@asynccontextmanager
async def office(
    directory: Path,
    clock: Clock | None = None,
    ids: Ids | None = None,
    *,
    holder: str = "here",
    bound_seconds: float = 3_600.0,
    team: bool = True,
) -> AsyncGenerator[Office]:
    """Opens `a.db` in `directory`, with the team of five in it."""
    clock, ids = clock or FakeClock(), ids or SequentialIds()
    async with await open_books(directory, clock, holder=holder) as database:
        mailbox, wake = Mailbox(database, clock, ids), Wake(database, clock)
        opened = Office(
            database,
            Registry(database),
            Board(database, ids),
            mailbox,
            wake,
            MailRequests(database, mailbox, wake, clock),
            Allocation(database, ids, bound_seconds=bound_seconds),
        )
        if team:
            for name, trust in TEAM.items():
                await opened.registry.register(name, OPERATOR, sha256="0" * 64, trust=trust)
        yield opened
