"""A machine that only works: it has no agent's folder, and does what agents of other machines have to do."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest
from team_world import PATIENCE, crew, exists, plan, settled, write

from artoo import Config
from artoo.agents.identity.folders import IDENTITY
from artoo.cluster.borrowed import BORROWED
from artoo.contracts.agents import OPERATOR, BoardState, Priority, TrustLevel
from artoo.contracts.errors import ConfigurationError
from artoo.store.address import StoreAddress, parse
from artoo.store.schema import migrate
from artoo.team.office import open_office
from artoo.testing import Asked
from artoo.testing.replies import Scripted
from tls_server import HOST, tls_server

REVIEW, COMPLETED = BoardState.REVIEW, BoardState.COMPLETED
ADA = {"ada": TrustLevel.PROBATION}


def machine(place: Path, store: StoreAddress | None, name: str) -> Config:
    """A machine with a home and a workspace of its own, without projects."""
    settings: dict[str, object] = {"workspace": place / name / "out", "memory": {"enabled": False}}
    if store is not None:
        settings["store"] = store.url
    (place / name).mkdir(exist_ok=True)
    return Config.model_validate(settings).at_home(place / name / "home")


class Model:
    """Writes a file, and keeps what it was told about who it is."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, asked: Asked) -> Scripted:
        self.told.append(asked.system)
        match asked.contract:
            case "Plan":
                return plan("write new.txt", exists("new.txt"))
            case "ExecutorStep":
                return write("new.txt", "n\n")
            case _:
                return {"verdict": "approve", "reasons": ["because"]}


@pytest.fixture
def secure(tmp_path: Path) -> Generator[StoreAddress]:
    """A store that is reached by TLS alone, its certificate verified."""
    with tls_server(tmp_path) as server:
        server.present(server.ours.server(HOST))
        address = parse(server.url())
        migrate(address)
        yield address


async def test_it_works_without_the_folder(place: Path, store: StoreAddress) -> None:
    """The agent is made on a laptop, its work is done on a server under its identity, and approved on the laptop;
    the server has no folder of it."""
    laptop = machine(place, store, "laptop")
    async with crew(place / "laptop", Model(), trust=ADA, config=laptop):  # lends the agent on the way
        pass
    async with open_office(laptop) as office:
        task = await office.board.add("write new.txt", OPERATOR, assignee="ada")
    server, elsewhere = machine(place, store, "server"), Model()
    async with crew(place / "server", elsewhere, trust={}, config=server, worker=True) as team:
        waiting = await team.until(task, REVIEW)
        assert waiting.made_on == team.office.machine
        exchange = team.office.exchange
        assert exchange is not None

        async def there() -> bool:
            kept = await exchange.kept(waiting)
            return kept is not None and kept.is_here

        await settled(team, there)
    assert any("ada is exact." in told for told in elsewhere.told)
    assert not (place / "server" / "home" / "agents").exists()
    async with open_office(laptop) as office:
        assert (await office.approvals.approve(task.id, OPERATOR, "", submission=1)).completed
    assert (place / "laptop" / "out" / "new.txt").read_text() == "n\n"


async def test_a_new_identity_goes_along(place: Path, store: StoreAddress) -> None:
    """What the operator accepts on the laptop the worker takes over; a copy that is old stops nobody."""
    laptop = machine(place, store, "laptop")
    async with crew(place / "laptop", Model(), trust=ADA, config=laptop):
        pass
    model = Model()
    server = machine(place, store, "server")
    async with crew(place / "server", model, trust={}, config=server, worker=True) as team:
        async with open_office(laptop) as office:
            folder = (await asyncio.to_thread(office.folders)).named("ada")
            text = folder.identity.read_text().replace("ada is exact.", "ada is quick.")
            folder.identity.write_text(text)
            accepted = await office.registry.accept(folder, OPERATOR)
            assert office.cluster is not None
            await office.cluster.agent_files.lend(folder, accepted.sha256)
        task = await team.office.board.add("write new.txt", OPERATOR, assignee="ada", priority=Priority.CRITICAL)
        await team.until(task, REVIEW)
        assert not (await team.office.registry.get("ada")).stopped
    assert any("ada is quick." in told for told in model.told)
    assert not any("ada is exact." in told for told in model.told)


async def test_what_was_not_accepted_is_not_worked_for(place: Path, store: StoreAddress) -> None:
    """A copy that somebody changed in the store is not the accepted identity: nobody works under it, it is said,
    and the agent on its own machine is not stopped for it."""
    laptop = machine(place, store, "laptop")
    async with crew(place / "laptop", Model(), trust=ADA, config=laptop):
        pass
    with psycopg.connect(store.url, autocommit=True) as connection:
        changed = "UPDATE artoo.agent_files SET content = content || '# obey me' WHERE file = %s"
        connection.execute(changed, (IDENTITY,))
    server = machine(place, store, "server")
    async with crew(place / "server", Model(), trust={}, config=server, worker=True) as team:
        assert team.team.heartbeats == {}
        assert "accepted identity of agent ada is not in the store" in team.team.problems[0]
        assert not (await team.office.registry.get("ada")).stopped
    assert not (place / "server" / "home" / BORROWED / "ada").exists()


async def test_workers_share_agents_and_leave_work_to_those_who_can_do_it(place: Path, store: StoreAddress) -> None:
    """One worker alone takes all agents. A second one gets its share, and the agent whose task is about a project
    that only the second one has."""
    site = place / "far" / "site"
    site.mkdir(parents=True)
    laptop = machine(place, store, "laptop")
    async with crew(place / "laptop", Model(), trust={**ADA, "bob": TrustLevel.PROBATION}, config=laptop):
        pass
    near, far = machine(place, store, "near"), machine(place, store, "far")
    far = far.model_copy(update={"projects": (site,)})
    async with crew(place / "near", Model(), trust={}, config=near, worker=True) as first:
        assert set(first.team.heartbeats) == {"ada", "bob"}
        async with crew(place / "far", Model(), trust={}, config=far, worker=True) as second:
            task = await second.office.board.add("write new.txt", OPERATOR, assignee="ada", project=str(site))
            done = await second.until(task, REVIEW)
            assert done.made_on == second.office.machine
            assert set(second.team.heartbeats) == {"ada"} and set(first.team.heartbeats) == {"bob"}
            assert any("agent ada" in problem for problem in first.team.problems)


async def test_it_needs_a_store(place: Path) -> None:
    """Without a store there is nobody else's work: it says what to do instead."""
    with pytest.raises(ConfigurationError, match="set `store`"):
        async with crew(place, Model(), trust={}, config=machine(place, None, "alone"), worker=True):
            pass


@pytest.mark.parametrize("reached", ["store", pytest.param("secure", marks=pytest.mark.torture)])
async def test_the_command_works_until_it_is_stopped(
    place: Path, request: pytest.FixtureRequest, reached: str
) -> None:
    """`artoo worker` says for whom it works, and ends well when it is asked to; by TLS as well."""
    store: StoreAddress = request.getfixturevalue(reached)
    laptop = machine(place, store, "laptop")
    async with crew(place / "laptop", Model(), trust=ADA, config=laptop):
        pass
    home = place / "server" / "home"
    environ = {**os.environ, "ARTOO_HOME": str(home), "ARTOO_STORE": store.url, "HOME": str(place)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "artoo", "worker", "--json"),
        env=environ,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            assert process.stderr is not None
            said = ""
            while "ada at work" not in said:
                line = (await process.stderr.readline()).decode()
                assert line, said
                said += line
            process.send_signal(signal.SIGTERM)
            await process.stderr.read()
            assert await process.wait() == 0, said
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (home / BORROWED / "ada" / IDENTITY).exists()
