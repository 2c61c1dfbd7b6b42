"""Decide which agents this machine runs, for hosts with the agent's folder and for workers.

The seat of an agent is a lease on the right to run the agent.

A machine that has an agent's folder takes the agent's seat and keeps it. A worker takes free seats. If an agent has
work that the worker can do, the worker takes the seat at once. It takes only one new seat in each pass, so that
other workers get some too. It also takes its share of the agents without work, so that their letters are read. A
worker releases a seat if only another machine can do the work of the agent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from artoo.agents.board.claim_holders import machine_of
from artoo.agents.board.next_task import Allocation
from artoo.agents.storage.monotonic_clock import moment
from artoo.agents.storage.transaction import Reading
from artoo.cluster.cluster import Cluster
from artoo.cluster.machines import SEAT_SECONDS, Machine
from artoo.contracts.errors import StoreRefused
from artoo.runtime.task.task_header import own_version

_WAITING = (
    "SELECT DISTINCT project FROM tasks WHERE (state = 'pending' OR (state = 'blocked' AND resumable))"
    " AND (assignee = ? OR assignee IS NULL) AND project <> ''"
)


@dataclass(slots=True)
class Seating:
    """Takes and releases the seats of one process. `allocation` finds the work that can be done on this machine."""

    cluster: Cluster
    allocation: Allocation
    worker: bool
    _others: tuple[Machine, ...] = ()
    _holders: dict[str, str] = field(default_factory=dict[str, str])
    _held: int = 0
    _share: int = 0
    _taken: bool = False

    async def look(self, agents: int) -> None:
        """Record that this machine is active, and read which other machines are. `agents`: the number of all
        agents."""
        cluster, projects = self.cluster, self.cluster.projects.names or ()
        await cluster.machines.seen(cluster.machine, own_version(), projects, worker=self.worker)
        now = moment(await cluster.database.read(lambda reading: reading.steady_us))
        since = now - timedelta(seconds=SEAT_SECONDS)
        machines = await cluster.machines.list()
        self._others = tuple(one for one in machines if one.last_seen_at >= since and one.id != cluster.machine)
        self._holders = await cluster.seats.all()
        self._held = list(self._holders.values()).count(cluster.database.holder)
        self._share = math.ceil(agents / (1 + sum(one.worker for one in self._others)))
        self._taken = False

    async def why_not(self, agent: str, *, borrowed: bool, busy: Callable[[], bool]) -> str | None:
        """Take or renew the seat of an agent. Return None if this succeeds. Otherwise return the reason why the
        agent may not run here. The seat is then released."""
        holder = self._holders.get(agent, "")
        mine = holder == self.cluster.database.holder
        if borrowed and not busy() and (why := await self._why_leave(agent, mine=mine)) is not None:
            if mine:
                self._held -= 1
                await self.cluster.seats.leave(agent)
            return why
        try:
            taken = await self.cluster.seats.take(agent)
        except StoreRefused as error:
            return f"agent {agent} may not work on this machine: {error}"
        if not taken:
            return f"agent {agent} is at work on another machine ({machine_of(holder)})"
        self._held += not mine
        return None

    async def _why_leave(self, agent: str, *, mine: bool) -> str | None:
        """Return the reason why a worker should not take or keep the seat of this agent. Return None if it
        should."""
        workers = [one for one in self._others if one.worker]
        if await self.allocation.peek(agent) is not None:
            # At most one new seat in each pass, so that other workers get some too.
            if not mine and self._taken and workers:
                return f"agent {agent} is left to the other workers for a moment"
            self._taken = self._taken or not mine
            return None
        there = {project for one in workers for project in one.projects}
        if projects := await self.cluster.database.read(lambda reading: _waiting(reading, agent)) & there:
            return f"what agent {agent} has to do is about {', '.join(sorted(projects))}, which other workers have"
        if self._held >= self._share + mine:
            return f"agent {agent} is left to the other workers: nothing waits for it here"
        return None


def _waiting(reading: Reading, agent: str) -> set[str]:
    """Return the projects of the pending tasks that the agent may take."""
    return set(reading.names(_WAITING, (agent,)))
