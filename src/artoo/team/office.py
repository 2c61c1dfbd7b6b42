"""Open the team's database, registry and submissions, for commands and `artoo serve`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from artoo.agents.board.board import Board
from artoo.agents.board.claim_holders import machine_of
from artoo.agents.board.rules import ComplexityRule, Policies, TrustPolicy
from artoo.agents.foreign.foreign_tasks import Foreign
from artoo.agents.foreign.push_targets import ForeignPost
from artoo.agents.heartbeat.ledger import Pulses
from artoo.agents.identity.folders import FoundAgents, find_agents
from artoo.agents.identity.registry import Registry
from artoo.agents.mail.mailbox import Mailbox
from artoo.agents.mail.request_reply import MailRequests
from artoo.agents.mail.wake import Wake
from artoo.agents.storage.database import Database, Tell, database_path, open_file
from artoo.contracts.agents import RUNTIME, BoardState, Complexity, Priority, TrustLevel
from artoo.contracts.errors import SandboxError
from artoo.ports.clock import Clock
from artoo.ports.ids import Ids
from artoo.runtime.app.system import SystemClock, UuidIds
from artoo.runtime.changes.submissions import Submissions
from artoo.runtime.cluster.project_names import Projects
from artoo.runtime.config.model import Config
from artoo.store.address import parse
from artoo.store.connecting import check_installed
from artoo.team.approval import Approvals

if TYPE_CHECKING:
    from artoo.cluster.cluster import Cluster
    from artoo.cluster.exchange import Exchange

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Office:
    """The stored data and the services of a home's team. `cluster` is set if several machines share the
    database."""

    config: Config
    database: Database
    board: Board
    mailbox: Mailbox
    asking: MailRequests
    registry: Registry
    pulses: Pulses
    wake: Wake
    submissions: Submissions
    approvals: Approvals
    foreign: Foreign
    foreign_post: ForeignPost
    policies: Policies
    clock: Clock
    ids: Ids
    projects: Projects
    cluster: Cluster | None

    @property
    def machine(self) -> str:
        """Return the name of this machine. Return "" if the database is not shared."""
        return "" if self.cluster is None else self.cluster.machine

    @property
    def exchange(self) -> Exchange | None:
        """Return the object that exchanges submissions with other machines. Return None if the database is not
        shared."""
        return None if self.cluster is None else self.cluster.exchange

    @property
    def home(self) -> Path:
        """Return artoo's own directory as a resolved path."""
        return self.submissions.home

    @property
    def routine(self) -> Path:
        """Return the path of the home's patrol routine. All agents run it in addition to their own. It need not
        exist."""
        return _routine(self.config, self.home)

    async def archive(self, task_id: str, actor: str) -> None:
        """Archive a task, and then delete its work. If this is interrupted, the next start deletes the work.

        Raises GovernanceRefused if the task cannot be archived.
        """
        await self.board.archive(task_id, actor)
        await asyncio.to_thread(self.submissions.discard, task_id, actor)

    async def sweep(self) -> None:
        """Delete the work of archived tasks that an interrupted process has not deleted.

        The work of a task that the database does not know is kept, because the database may be new or an old copy.
        Raises ActivityStoreError.
        """
        listed = await asyncio.to_thread(self.submissions.listed)
        states = await self.board.states(listed)
        for task_id in listed:
            if states.get(task_id) is BoardState.ARCHIVED:
                await asyncio.to_thread(self._discard, task_id)
        if lost := [task_id for task_id in listed if task_id not in states]:
            logger.warning(
                "the board does not know %d tasks whose work is here, and nothing of it was touched: artoo status",
                len(lost),
            )

    def _discard(self, task_id: str) -> None:
        # another process is using it
        with suppress(SandboxError):
            self.submissions.discard(task_id, RUNTIME)

    def folders(self) -> FoundAgents:
        """Find the agents that have folders on disk. Blocks."""
        return folders_of(self.config, self.home)


def folders_of(config: Config, home: Path) -> FoundAgents:
    """Find the agents that have folders on disk. `home`: artoo's own directory, as a resolved path. Blocks."""
    return find_agents(home, home / config.runtime.memory.procedural.path, _routine(config, home))


def _routine(config: Config, home: Path) -> Path:
    return home / config.runtime.autonomy.heartbeat.patrol_routine


async def _missing(config: Config, home: Path, registry: Registry) -> frozenset[str]:
    """Return the agents whose folders no longer exist. If several machines share the database, return none, because
    another machine may have the folder."""
    there = {folder.name for folder in (await asyncio.to_thread(folders_of, config, home)).agents}
    return frozenset(
        record.name for record in await registry.list() if not (record.retired or record.name in there)
    )


def trust_policies(config: Config) -> Policies:
    """Return the levels of trust in the configuration."""
    levels = config.runtime.governance.trust_levels
    listed = {
        TrustLevel.PROBATION: levels.probation,
        TrustLevel.STANDARD: levels.standard,
        TrustLevel.TRUSTED: levels.trusted,
        TrustLevel.SENIOR: levels.senior,
    }
    return {level: TrustPolicy(trust.review_threshold, trust.can_approve) for level, trust in listed.items()}


def complexity_rules(config: Config) -> tuple[ComplexityRule, ...]:
    """Return the operator's rules that determine the complexity of tasks which have none."""
    return tuple(
        ComplexityRule(
            Complexity(rule.complexity),
            None if rule.project is None else str(Path(rule.project).expanduser()),
            rule.assignee,
            None if rule.creator is None else rule.creator == "operator",
            None if rule.priority is None else Priority(rule.priority),
        )
        for rule in config.runtime.governance.complexity_rules
    )


async def open_books(config: Config, clock: Clock, *, lasting: Tell | None = None) -> Database:
    """Open the database of a home (made if it does not exist), or the store that it shares with other machines.

    `lasting`: given by processes that run for long. With it, the database waits while the store cannot be reached
    or the disk is full, and reports this by calling `lasting`. Raises ConfigurationError and ActivityStoreError.
    Each says what must be done.
    """
    home = config.home.resolve()
    if config.store is None:
        path = database_path(config.runtime.memory.episodic.activity_db, home)
        return await open_file(path, clock, lasting=lasting)
    check_installed()
    # the driver is installed only with an optional extra
    from artoo.cluster.cluster import open_shared

    return await open_shared(config, parse(config.store), lasting)


@asynccontextmanager
async def open_office(
    config: Config, clock: Clock | None = None, ids: Ids | None = None, *, lasting: Tell | None = None
) -> AsyncGenerator[Office]:
    """Open the database, and the services that use it. Raises the errors of `open_books`."""
    clock, ids = clock or SystemClock(), ids or UuidIds()
    config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home = config.home.resolve()
    policies = trust_policies(config)
    everywhere = Projects({}, everywhere=True)
    projects = everywhere if config.store is None else await asyncio.to_thread(Projects.declared, config.projects)
    async with await open_books(config, clock, lasting=lasting) as database:
        machine, rules = machine_of(database.holder), complexity_rules(config)
        board = Board(database, ids, policies=policies, rules=rules)
        foreign = Foreign(database, ids, policies=policies, rules=rules)
        registry = Registry(database)
        missing = partial(_missing, config, home, registry) if config.store is None else None
        mailbox, wake = Mailbox(database, clock, ids, missing=missing), Wake(database, clock)
        submissions = Submissions(home)
        cluster = None
        if config.store is not None:
            from artoo.cluster.cluster import cluster_of

            address = parse(config.store)
            cluster = cluster_of(config, address, database, machine, board, submissions, projects)
        exchange = None if cluster is None else cluster.exchange
        yield Office(
            config=config,
            database=database,
            board=board,
            mailbox=mailbox,
            asking=MailRequests(database, mailbox, wake, clock),
            registry=registry,
            pulses=Pulses(database),
            wake=wake,
            submissions=submissions,
            approvals=Approvals(board, submissions, config.allow, config.apply, machine, exchange),
            foreign=foreign,
            foreign_post=ForeignPost(database),
            policies=policies,
            clock=clock,
            ids=ids,
            projects=projects,
            cluster=cluster,
        )
