"""Connect to the shared PostgreSQL store with its patience, and build the services of this machine.

This module is imported only if a store is configured.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

from artoo.agents.board.board import Board
from artoo.agents.board.claim_holders import this_process
from artoo.agents.storage.database import Database, Tell, failed
from artoo.cluster.borrowed import AgentFiles
from artoo.cluster.exchange import Exchange
from artoo.cluster.machines import Machines, Seats
from artoo.cluster.pg_listen import Listener
from artoo.cluster.submission_bundles import Differences
from artoo.ports.clock import Clock
from artoo.runtime.app.machine_name import machine_name
from artoo.runtime.changes.submissions import Submissions
from artoo.runtime.cluster.project_names import Projects
from artoo.runtime.config.model import Config
from artoo.store.address import StoreAddress
from artoo.store.connecting import MOST_CONNECTIONS
from artoo.store.postgres import PostgresEngine

PATIENCE_SECONDS = 20.0
"""Number of seconds that a command waits for a store that cannot be reached. `artoo serve` waits without a
limit."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The services of this machine for a shared database. `machine`: this machine's name. `exchange` fetches the
    change sets of other machines."""

    machine: str
    database: Database
    projects: Projects
    machines: Machines
    seats: Seats
    agent_files: AgentFiles
    exchange: Exchange


async def open_shared(config: Config, address: StoreAddress, lasting: Tell | None = None) -> Database:
    """Open the database in the store on behalf of this machine. Raises the errors of `open_store`."""
    holder = this_process(await asyncio.to_thread(machine_name, config.home.resolve()))
    return await open_store(address, holder=holder, lasting=lasting)


async def open_store(
    address: StoreAddress,
    *,
    holder: str,
    patience: float = PATIENCE_SECONDS,
    lasting: Tell | None = None,
    clock: Clock | None = None,
    most: int = MOST_CONNECTIONS,
) -> Database:
    """Open the database in the store. If `clock` is None, the clock of the store is used, which is needed if there
    are several machines.

    Raises ConfigurationError if the store is not set up or has another schema, and StoreAway if it cannot be
    reached.
    """
    engine = PostgresEngine(address, failed, waiting=min(patience, PATIENCE_SECONDS), refusing=0.0, most=most)
    listen = partial(Listener, address, holder)
    opened = Database(engine, holder, clock, threads=most, patience=patience, lasting=lasting, listen=listen)
    try:
        await opened.read(lambda reading: reading.steady_us)
    except BaseException:
        await opened.close()
        raise
    return opened


def cluster_of(
    config: Config,
    address: StoreAddress,
    database: Database,
    machine: str,
    board: Board,
    submissions: Submissions,
    projects: Projects,
) -> Cluster:
    """Build the services of this machine for the shared database."""
    differences, workspace = Differences(database), config.workspace_path
    return Cluster(
        machine=machine,
        database=database,
        projects=projects,
        machines=Machines(database),
        seats=Seats(database),
        agent_files=AgentFiles(database),
        exchange=Exchange(board, differences, submissions, projects, workspace, machine, address),
    )
