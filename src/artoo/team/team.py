"""Start and run all agents of a home, with the intervals of upkeep, renewal of seats, and archiving.

Reference: SPEC section 11.

database (Office) ─┬─ outbox ─────────────► the stream
                   ├─ wake ─► heartbeat ──► duties: work, patrol, dream cycle ──► Artoo.run
                   └─ upkeep: claims of dead processes, interrupted approvals, the archive
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from artoo.agents.board.board import MOST_TASKS
from artoo.agents.board.next_task import Allocation
from artoo.agents.board.rows import ANYBODY
from artoo.agents.heartbeat.backoff import Backoff
from artoo.agents.heartbeat.duties import Done, Duty
from artoo.agents.heartbeat.heartbeat import Heartbeat, HeartbeatSettings
from artoo.agents.identity.folders import AgentFolder, FoundAgents, folder_of
from artoo.agents.identity.registry import AgentRecord
from artoo.agents.mail.outbox import Outbox
from artoo.agents.patrol.conditions import Looking
from artoo.agents.patrol.parser import patrol_problems
from artoo.agents.patrol.patrol import Patrol, PatrolRequest
from artoo.agents.patrol.store import PatrolStore
from artoo.agents.storage.monotonic_clock import RENEW_SECONDS
from artoo.contracts.agents import RUNTIME, BoardState
from artoo.contracts.base import Contract
from artoo.contracts.criteria import CommandSucceeds, FileMatches
from artoo.contracts.errors import ConfigurationError, GovernanceRefused, IdentityRefused, SandboxError
from artoo.contracts.roles import Role
from artoo.ports.bus import Port
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.changes.startup_recovery import settle_earlier
from artoo.team.answering import patrol
from artoo.team.bench import Bench, Member
from artoo.team.duties import WorkDuty
from artoo.team.minds import Minds
from artoo.team.office import Office
from artoo.verdicts.checks import run_check

if TYPE_CHECKING:
    from artoo.cluster.seating import Seating

logger = logging.getLogger(__name__)

NO_TASK = ""
"""The task id of records of the team. These belong to no task of the dual loop. They are on the stream, but in no
task log."""

UPKEEP_SECONDS, LATE_SECONDS = 60.0, 5.0
LOOK_SECONDS = 20.0
"""Number of seconds between two renewals of seats, and between two checks for free seats. It is a third of the
lease."""
ARCHIVE_AFTER = timedelta(days=7)
"""How long a completed or cancelled task stays on the board before artoo archives it."""

LONGEST_WAIT = 3_600.0
STOP_AGAIN_SECONDS = 1.0
BETWEEN_LOOKS_SECONDS = 2.0
"""Minimum number of seconds between two checks of the seats, so that many tasks that arrive at the same time cause
only one check."""


class Team:
    """The agents of one home. For a worker, the agents of all homes. It is opened with `open_team`, and then
    started and ended with `run` and `stop`."""

    def __init__(self, office: Office, artoo: Artoo, minds: Minds, *, grace: float, worker: bool = False) -> None:
        self.office = office
        self._worker = worker
        self._artoo = artoo
        self._minds = minds
        self._grace = grace
        interval = office.config.runtime.autonomy.heartbeat.interval_seconds
        self._backoff = Backoff(float(interval), random.random)
        self._ports: dict[Role, Port] = {}
        self._outbox = Outbox(office.database, self._publish)
        self._stopping = asyncio.Event()
        self._waking: list[asyncio.Task[None]] = []
        self._bench = Bench(office, artoo, minds, lambda: tuple(self.heartbeats), self._port)
        self._seating: Seating | None = None
        if office.cluster is not None:
            from artoo.cluster.seating import Seating

            self._seating = Seating(office.cluster, self._allocation(), worker)
        self.heartbeats: dict[str, Heartbeat] = {}
        self.problems: tuple[str, ...] = ()

    async def settle(self) -> None:
        """Recover the interrupted operations, claims, letters and approvals of earlier processes. Delete the work
        of archived tasks.

        Raises ConfigurationError, ActivityStoreError, SandboxError.
        """
        office = self.office
        await settle_earlier(office.config)
        await office.board.work.recover()
        await office.mailbox.recover()
        await office.approvals.finish_cut()
        await office.sweep()

    async def run(self, *, ready: Callable[[], None] | None = None) -> None:
        """Run until `stop` is called. Then wait until running work has ended or was released. Raises
        ActivityStoreError. If the office was opened with `lasting`, it is not raised while the store cannot be
        reached or the disk is full."""
        async with asyncio.TaskGroup() as group:
            beating: list[asyncio.Task[None]] = []
            publishing = group.create_task(self._outbox.run(self.office.clock))
            beside = [publishing, group.create_task(self._upkeep(group, beating))]
            await self._recruit(group, beating)
            if self._seating is not None:
                beside.append(group.create_task(self._keep_seats(group, beating)))
            if ready is not None:
                ready()
            await self._stopping.wait()
            for heartbeat in self.heartbeats.values():
                heartbeat.stop()
            await self._wound_up(beating)
            for task in (*beside, *self._waking):
                task.cancel()
        await self._outbox.drain()
        if self.office.cluster is not None:
            await self.office.cluster.seats.leave()

    def stop(self) -> None:
        """Stop the heartbeats. Running tasks are asked to end, and the claims on work that is not finished are
        released."""
        self._stopping.set()

    async def _wound_up(self, beating: list[asyncio.Task[None]]) -> None:
        """Return when all heartbeats have ended. Tasks that start in the meantime are interrupted too."""
        running = set(beating)
        while running:
            self._artoo.interrupt()
            _, running = await asyncio.wait(running, timeout=STOP_AGAIN_SECONDS)

    async def _recruit(self, group: asyncio.TaskGroup, beating: list[asyncio.Task[None]]) -> None:
        """Start the heartbeats of accepted agents that have none yet. Stop those of agents that may not run
        here."""
        records = await self.office.registry.list()
        registered = {record.name: record for record in records}
        found = await self._found(records)
        problems = list(found.problems)
        retired = {record.name for record in records if record.retired}
        for name in retired:
            self._unseat(name)
        if self._seating is not None:
            await self._seating.look(len(found.agents))
        for folder in found.agents:
            if folder.name in retired:
                continue
            if folder.name not in registered:
                problems.append(
                    f"agent {folder.name} is not accepted yet: read {folder.identity}, then"
                    f" artoo agent accept {folder.name}"
                )
            elif (why := await self._seat_elsewhere(folder)) is not None:
                self._unseat(folder.name)
                problems.append(why)
            elif folder.name not in self.heartbeats and not self._stopping.is_set():
                self._minds.enter(folder)
                self.heartbeats[folder.name] = heartbeat = self._heartbeat(folder)
                beating.append(group.create_task(heartbeat.run()))
                self._waking.append(group.create_task(self._wake(folder.name)))
            if self._seating is not None and folder.name in registered:
                await self._seating.cluster.agent_files.lend(folder, registered[folder.name].identity_sha256)
            problems += await asyncio.to_thread(patrol_problems, folder.heartbeat)
        await self._stop_the_gone(records, found)
        self.problems = tuple(problems)

    async def _stop_the_gone(self, records: Sequence[AgentRecord], found: FoundAgents) -> None:
        """Stop the agents whose folders no longer exist. Their tasks are held for the operator, who is informed.

        This is not done if several machines share the database, because another machine may have the folder.
        """
        there = {folder.name for folder in found.agents}
        for record in records:
            if not (self.office.machine or record.stopped or record.name in there):
                with suppress(IdentityRefused):
                    await self.office.registry.check(folder_of(self.office.home, record.name))

    async def _found(self, records: Sequence[AgentRecord]) -> FoundAgents:
        """Return the folders of the agents of this home. For a worker, return copies of the folders of all accepted
        agents, from the store."""
        if not self._worker or self._seating is None:
            return await asyncio.to_thread(self.office.folders)
        return await self._seating.cluster.agent_files.borrow(self.office.home, records)

    async def _seat_elsewhere(self, folder: AgentFolder) -> str | None:
        """Return the reason why the agent may not run on this machine. Return None if it may, or if there is only
        one machine."""
        if self._seating is None:
            return None

        def busy() -> bool:
            heartbeat = self.heartbeats.get(folder.name)
            return heartbeat is not None and heartbeat.busy is not None

        return await self._seating.why_not(folder.name, borrowed=folder.borrowed, busy=busy)

    async def _keep_seats(self, group: asyncio.TaskGroup, beating: list[asyncio.Task[None]]) -> None:
        """Renew seats, and check for free seats and for work of dead machines. This is done periodically and when
        work arrives."""
        office = self.office
        # The mark is read before the first check, so that work that arrives during the check is noticed.
        mark = await office.wake.mark(ANYBODY)
        while True:
            await office.wake.wait(ANYBODY, mark, LOOK_SECONDS)
            # It is read before the check, so that nothing that arrives during the check is missed.
            mark = await office.wake.mark(ANYBODY)
            await self._tried(office.board.work.recover, partial(self._recruit, group, beating))
            await office.clock.sleep(BETWEEN_LOOKS_SECONDS)

    def _unseat(self, name: str) -> None:
        """Stop the heartbeat of an agent that is retired, or whose seat is on another machine."""
        heartbeat = self.heartbeats.pop(name, None)
        if heartbeat is not None:
            heartbeat.stop()

    def _heartbeat(self, folder: AgentFolder) -> Heartbeat:
        office, settings = self.office, self.office.config.runtime.autonomy.heartbeat
        return Heartbeat(
            folder.name,
            office.pulses,
            self._duties(folder),
            office.clock,
            backoff=self._backoff,
            paused=partial(self._idle, folder.name),
            settings=HeartbeatSettings(interval=float(settings.interval_seconds), grace=self._grace),
        )

    def _allocation(self) -> Allocation:
        office, settings = self.office, self.office.config.runtime.autonomy.heartbeat
        return Allocation(
            office.database,
            office.ids,
            policies=office.policies,
            tasks=settings.task_scan,
            mail=settings.mailbox_check,
            projects=office.projects.names,
        )

    def _duties(self, folder: AgentFolder) -> tuple[Duty, ...]:
        load = partial(self._load, folder)
        work = WorkDuty(folder.name, self._bench, self._allocation(), load)
        # patrols and dream cycles need the folder of the agent
        if folder.borrowed:
            return (work,)
        return (work, self._patrol(folder), self._minds.dream_cycle(folder.name))

    def _patrol(self, folder: AgentFolder) -> Patrol:
        office, bench = self.office, self._bench
        desk = bench.workspace / "agents" / folder.name

        async def holds(check: FileMatches | CommandSucceeds) -> bool:
            await asyncio.to_thread(bench.desk, folder.name)
            source = await self._artoo.evidence(desk)
            return (await run_check(check, output="", tool_calls=(), source=source)).passed

        async def run(command: str) -> tuple[int | None, str]:
            await asyncio.to_thread(bench.desk, folder.name)
            seen = await (await self._artoo.evidence(desk)).command(command)
            # Files that the script has written are discarded, so such a run counts as failed.
            code = None if seen.written else seen.exit_code
            return code, seen.output if seen.problem is None else f"{seen.output}\n{seen.problem}"

        async def submit(request: PatrolRequest) -> Done:
            try:
                return await patrol(bench, await self._load(folder), request)
            except (IdentityRefused, ConfigurationError) as error:
                return Done(trouble=str(error))

        return Patrol(
            folder.name,
            tuple(dict.fromkeys((folder.heartbeat, office.routine))),
            PatrolStore(office.database, folder.name),
            Looking(folder.name, desk, office.database, holds),
            office.clock,
            submit=submit,
            tell=partial(office.pulses.tell, folder.name),
            run=run,
        )

    async def _load(self, folder: AgentFolder) -> Member:
        """Load the agent with its current identity. Raises IdentityRefused, ConfigurationError."""
        if folder.borrowed:
            found = await self._found([await self.office.registry.get(folder.name)])
            if not found.agents:
                raise ConfigurationError("; ".join(found.problems))
        return Member(folder, await self.office.registry.load(folder), self.office.registry)

    async def _idle(self, name: str) -> str | None:
        record = await self.office.registry.get(name)
        return record.stopped or ("by the operator" if record.paused else None)

    async def _wake(self, name: str) -> None:
        """Wake an agent for its letters and tasks, whichever process they come from."""
        wake = self.office.wake
        mark = await wake.mark(name)
        while True:
            if await wake.wait(name, mark, LONGEST_WAIT):
                mark = await wake.mark(name)
                heartbeat = self.heartbeats.get(name)
                if heartbeat is None:
                    return
                heartbeat.wake("something came in")

    async def _upkeep(self, group: asyncio.TaskGroup, beating: list[asyncio.Task[None]]) -> None:
        """Do the steps of the upkeep periodically. If a step fails, it is retried later, and the others are done
        nevertheless.

        Raises ActivityStoreError.
        """
        office = self.office
        steps: tuple[Callable[[], Awaitable[object]], ...] = (
            office.board.work.recover,
            office.mailbox.recover,
            office.approvals.finish_cut,
            *(() if office.exchange is None else (office.exchange.keep_up,)),
            partial(archive_old, office),
            *((partial(self._recruit, group, beating),) if self._seating is None else ()),
        )
        while True:
            since = office.clock.now()
            await office.clock.sleep(UPKEEP_SECONDS)
            if office.clock.now() - since > timedelta(seconds=UPKEEP_SECONDS + LATE_SECONDS):
                # The machine was suspended. Running workers get time to renew their claims first.
                await office.clock.sleep(RENEW_SECONDS)
            await self._tried(*steps)

    async def _tried(self, *steps: Callable[[], Awaitable[object]]) -> None:
        for step in steps:
            try:
                await step()
            except (ConfigurationError, SandboxError) as error:
                logger.warning("the team's upkeep is not finished yet: %s", error)

    def _publish(self, sender: Role, subject: str, payload: Contract) -> None:
        self._port(sender).publish(payload)

    def _port(self, role: Role) -> Port:
        if role not in self._ports:
            self._ports[role] = self._artoo.bus.port(role, NO_TASK)
            # The team only publishes messages, so it needs no inbox.
            self._artoo.bus.close_task(NO_TASK)
        return self._ports[role]


async def archive_old(office: Office) -> None:
    """Archive tasks that were completed or cancelled a week ago, and delete their work."""
    before = office.clock.now() - ARCHIVE_AFTER
    for task in await office.board.list({BoardState.COMPLETED, BoardState.CANCELLED}, limit=MOST_TASKS):
        if task.updated_at <= before:
            # the operator has archived it already, or another process is using it
            with suppress(GovernanceRefused, SandboxError):
                await office.archive(task.id, RUNTIME)


@asynccontextmanager
async def open_team(
    office: Office, artoo: Artoo, *, small_model: bool, grace: float = 20.0, worker: bool = False
) -> AsyncGenerator[Team]:
    """Open a team that is ready to run. `worker`: true if it works for the agents of all machines, whose folders
    are not here.

    Raises the errors of `Team.settle`. Raises ConfigurationError for a worker without a shared store.
    """
    if worker and office.cluster is None:
        raise ConfigurationError(
            "artoo serve worker works for the agents of a shared store, and none is configured: set `store`, or let"
            " the agents of this home work (artoo serve)"
        )
    settings = office.config.runtime.memory
    minds = Minds(office.database, artoo, office.clock, office.ids, settings, small_model=small_model)
    team = Team(office, artoo, minds, grace=grace, worker=worker)
    await team.settle()
    yield team
