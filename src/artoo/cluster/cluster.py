"""What a home has besides where several machines share its database. Nothing here is imported without a store."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass

from artoo.agents.board.board import Board
from artoo.agents.board.claim_holders import this_process
from artoo.agents.storage.database import Database
from artoo.cluster.borrowed import AgentFiles
from artoo.cluster.exchange import Exchange
from artoo.cluster.machines import Machines, Seats
from artoo.cluster.postgres import PATIENCE_SECONDS, SharedDatabase
from artoo.cluster.submission_bundles import Differences
from artoo.runtime.app.machine_name import machine_name
from artoo.runtime.changes.submissions import Submissions
from artoo.runtime.cluster.project_names import Projects
from artoo.runtime.config.model import Config
from artoo.store.address import StoreAddress


@dataclass(frozen=True, slots=True)
class Cluster:
    """`machine`: the name of this one; `exchange` brings what another one made."""

    machine: str
    database: Database
    projects: Projects
    machines: Machines
    seats: Seats
    agent_files: AgentFiles
    exchange: Exchange


async def open_shared(
    config: Config, address: StoreAddress, lasting: Callable[[str], None] | None = None
) -> SharedDatabase:
    """Open the database in the store. `lasting`: for who stays: it waits for a store that is away, and says so."""
    holder = this_process(await asyncio.to_thread(machine_name, config.home.resolve()))
    patience = math.inf if lasting else PATIENCE_SECONDS
    shared = await SharedDatabase.open(address, holder=holder, patience=patience)
    if lasting:
        shared.on_away(lasting)
    return shared


def cluster_of(
    config: Config,
    address: StoreAddress,
    database: Database,
    machine: str,
    board: Board,
    submissions: Submissions,
    projects: Projects,
) -> Cluster:
    """Put together what this machine needs."""
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
