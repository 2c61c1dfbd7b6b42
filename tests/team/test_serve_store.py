"""`artoo serve` on two machines that share a store, tried as a whole: real processes, a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from serving_world import Serving, script

from artoo import Config
from artoo.agents.identity.folders import create_agent
from artoo.auditor.layout import audit_directory
from artoo.auditor.verify import verify
from artoo.contracts.agents import OPERATOR, BoardState, BoardTask, Complexity, TaskMoved, TrustLevel
from artoo.runtime.cluster.remote_logs import verify_shared
from artoo.store.address import StoreAddress
from artoo.tasklog.layout import tasks_directory
from artoo.team.office import Office, open_office
from artoo.testing import ScriptedServer
from postgres_server import set_clock

PATIENCE = 900.0
CLERK, SENIOR = TrustLevel.PROBATION, TrustLevel.SENIOR
MACHINES = {"laptop": {"ada": CLERK, "cyd": SENIOR}, "server": {"bob": CLERK, "dan": SENIOR}}
"""Who works on which: a clerk, whose work is always reviewed, and one who may review."""


@dataclass(slots=True)
class Pair:
    """Two homes with a project each, and the desk at which the operator sits."""

    place: Path
    office: Office
    serving: dict[str, Serving]
    processes: dict[str, asyncio.subprocess.Process]

    def project(self, machine: str) -> Path:
        return self.place / machine / "project"

    async def start(self, machine: str) -> None:
        """Returns when its agents work."""
        serving = self.serving[machine]
        before = serving.greetings()
        self.processes[machine] = process = await serving.start()
        while serving.greetings() == before:
            assert process.returncode is None, serving.errors.read_text()
            await asyncio.sleep(0.1)

    async def kill(self, machine: str) -> None:
        """Without a word."""
        self.processes[machine].kill()
        await self.processes[machine].wait()

    async def until(self, look: Callable[[], Awaitable[bool]]) -> None:
        """Returns when it is so. The state is other processes'."""
        while not await look():
            for name, process in self.processes.items():
                assert process.returncode in (None, -9), self.serving[name].errors.read_text()
            await asyncio.sleep(0.1)

    async def stop(self) -> None:
        """As a person does."""
        for process in self.processes.values():
            if process.returncode is None:
                process.terminate()
        for name, process in self.processes.items():
            assert await process.wait() in (0, -9), self.serving[name].errors.read_text()

    async def in_state(self, task: BoardTask, *states: BoardState) -> bool:
        return (await self.office.board.get(task.id)).state in states

    async def moves(self, task: BoardTask) -> list[tuple[str, str]]:
        """Where it went, and who moved it."""
        log = await self.office.board.log(task.id)
        return [(one.after.value, one.actor) for one in log if isinstance(one, TaskMoved)]

    def proof(self, machine: str, address: StoreAddress) -> list[str]:
        """What `artoo audit verify` has to say about a machine."""
        home = self.place / machine / "home"
        found = verify(audit_directory(home), tasks_directory(home))
        verify_shared(home, address, found)
        assert sum(chain.messages for chain in found.chains) > 0
        return [f"{one.file}: {one.detail}" for one in found.problems]


async def hired(place: Path, office: Office, machine: str, store: StoreAddress, base_url: str) -> Serving:
    """A machine's home with its agents, its project and its settings."""
    (place / "project").mkdir(parents=True)
    for name, level in MACHINES[machine].items():
        identity = create_agent(place / "home", name, role="clerk", persona=f"{name} is exact.")
        await office.registry.register(name, OPERATOR, sha256=identity.sha256, trust=level)
    more = (("ARTOO_STORE", store.url), ("ARTOO_PROJECTS", str(place / "project")))
    return Serving(place, base_url, more)


async def run(place: Path, store: StoreAddress, play: Callable[[Pair], Awaitable[None]]) -> None:
    """Hires everybody, plays, stops everybody."""
    config = Config(workspace=place / "out", store=store.url).at_home(place / "desk")
    async with ScriptedServer(script) as server, open_office(config) as office:
        serving = {name: await hired(place / name, office, name, store, server.base_url) for name in MACHINES}
        pair = Pair(place, office, serving, {})
        try:
            async with asyncio.timeout(PATIENCE):
                await play(pair)
                await pair.stop()
        finally:
            for process in pair.processes.values():
                if process.returncode is None:
                    process.kill()
                    await process.wait()


async def test_two_machines_work_review_and_survive_a_kill(place: Path, store: StoreAddress) -> None:
    """Each project's tasks are worked on, reviewed and applied where it is; one machine is killed at its work."""

    async def play(pair: Pair) -> None:
        board, mailbox = pair.office.board, pair.office.mailbox
        tasks: dict[str, list[BoardTask]] = {}
        letters = list[str]()
        for machine, agents in MACHINES.items():
            clerk, project = next(iter(agents)), str(pair.project(machine))
            tasks[machine] = [
                await board.add(f"write {machine}{n}.txt with one line", OPERATOR, assignee=clerk,
                                complexity=Complexity.SIMPLE, project=project)
                for n in range(2)
            ]  # fmt: skip
            letters.append((await mailbox.send(OPERATOR, clerk, f"please write letter{machine}.txt")).id)
        await asyncio.gather(*(pair.start(machine) for machine in MACHINES))
        victim = tasks["laptop"][0]
        await pair.until(lambda: pair.in_state(victim, *set(BoardState) - {BoardState.PENDING}))
        await pair.kill("laptop")
        assert pair.office.cluster is not None
        machines = await pair.office.cluster.machines.list()
        assert len(machines) >= 2 and len(await pair.office.cluster.seats.all()) == 4
        await pair.start("laptop")

        async def all_done() -> bool:
            states = [
                await pair.in_state(task, BoardState.COMPLETED) for task in (*tasks["laptop"], *tasks["server"])
            ]
            return all(states) and len(await mailbox.list(OPERATOR, "inbox")) == len(letters)

        await pair.until(all_done)
        for machine, agents in MACHINES.items():
            clerk, senior = agents
            for task in tasks[machine]:
                moves = await pair.moves(task)
                assert moves[-2:] == [("review", clerk), ("completed", senior)]
                assert [after for after, _ in moves].count("completed") == 1
            names = sorted(path.name for path in pair.project(machine).iterdir())
            assert names == [f"{machine}0.txt", f"{machine}1.txt"]
        answers = await mailbox.list(OPERATOR, "inbox")
        assert sorted(str(kept.mail.in_reply_to) for kept in answers) == sorted(letters)

    await run(place, store, play)
    pair = Pair(place, None, {}, {})  # pyright: ignore[reportArgumentType] - the office is closed
    assert [pair.proof(machine, store) for machine in MACHINES] == [[], []]


@pytest.mark.torture  # the rule itself is tested with the shared books
async def test_what_a_machine_that_never_comes_back_had_begun_is_done_elsewhere(
    place: Path, store: StoreAddress
) -> None:
    """Killed at a task of no project: another machine takes it up when its agent's seat is over; done once."""

    async def play(pair: Pair) -> None:
        task = await pair.office.board.add("write alone.txt with one line", OPERATOR, complexity=Complexity.SIMPLE)
        await pair.start("laptop")
        await pair.until(lambda: pair.in_state(task, BoardState.IN_PROGRESS))
        await pair.kill("laptop")
        set_clock(store, 3_600)  # an hour passes
        await pair.start("server")
        await pair.until(lambda: pair.in_state(task, BoardState.COMPLETED))
        moves = await pair.moves(task)
        assert [after for after, _ in moves].count("completed") == 1
        assert moves[-1][1] in ("dan", "policy")

    await run(place, store, play)
