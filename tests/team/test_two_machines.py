"""What one machine handed in is looked at, approved and undone on another, over a real store."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import click
import psycopg
import pytest
from click.testing import CliRunner, Result
from team_world import Answering, Crew, crew, plan, settled, shell, writing

from artoo import Config
from artoo.cli.commands import changes_commands as settle_commands
from artoo.cluster import change_bundle as bundles
from artoo.cluster.exchange import Exchange
from artoo.contracts.agents import OPERATOR, BoardState, BoardTask, Complexity, TrustLevel
from artoo.contracts.errors import ActivityStoreError, ClaimLost, ConfigurationError, MoveRefused, SandboxError
from artoo.runtime.changes.find_pending import find_pending, pendings
from artoo.store.address import StoreAddress
from artoo.team import approval
from artoo.team.office import Office, open_office
from artoo.testing import Asked
from artoo.testing.replies import Scripted
from artoo.workspace.commit import undo

REVIEW, COMPLETED, PENDING = BoardState.REVIEW, BoardState.COMPLETED, BoardState.PENDING
ADA = {"ada": TrustLevel.PROBATION}
CYD = {"cyd": TrustLevel.SENIOR}
SCRIPT = "echo edited > a.txt && echo n > new.txt"
RAN = {"text": "it ran", "check": {"check": "tool_succeeded"}}


def doing(command: str, verdict: str = "approve") -> Answering:
    """A model that runs one command."""

    def script(asked: Asked) -> Scripted:
        match asked.contract:
            case "Plan":
                return plan("do it", RAN, tool="shell")
            case "ExecutorStep":
                return shell(command)
            case _:
                return {"verdict": verdict, "reasons": ["because"]}

    return script


@pytest.fixture
def site(place: Path) -> Path:
    """A repository, of which each machine has a clone; by name they are one project."""
    origin = place / "origin"
    origin.mkdir()
    (origin / "a.txt").write_text("one\n")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "begin"]):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(origin), *command], check=True
        )
    return origin


def machine(place: Path, store: StoreAddress, name: str, *, declared: bool = True) -> Config:
    """A machine with a home, a workspace and a clone of its own."""
    clone = place / name / "site"
    if not clone.exists():
        clone.parent.mkdir()
        subprocess.run(["git", "clone", "-q", str(place / "origin"), str(clone)], check=True)
        url = "https://git.example.org/site"
        subprocess.run(["git", "-C", str(clone), "remote", "set-url", "origin", url], check=True)
    return Config.model_validate(
        {
            "workspace": place / name / "out",
            "store": store.url,
            "projects": [clone] if declared else [],
            "memory": {"enabled": False},
        }
    ).at_home(place / name / "home")


@asynccontextmanager
async def worker(
    place: Path, store: StoreAddress, script: Answering, trust: dict[str, TrustLevel] = ADA, name: str = "server"
) -> AsyncGenerator[Crew]:
    """A machine on which agents work."""
    config = machine(place, store, name)
    async with crew(place / name, script, trust=trust, config=config) as team:
        yield team


async def add(office: Office, clone: Path, text: str = "do it", to: str = "ada") -> BoardTask:
    """A task of the project."""
    name = office.projects.name(clone)
    assert name == "git.example.org/site"
    return await office.board.add(text, OPERATOR, assignee=to, complexity=Complexity.COMPLEX, project=name)


async def handed_in(
    place: Path, store: StoreAddress, script: Answering, *, wait: bool = True
) -> tuple[BoardTask, Config]:
    """A submission of the server's, which does not run any more; and the laptop."""
    async with worker(place, store, script) as team:
        task = await add(team.office, place / "server" / "site")
        task = await team.until(task, REVIEW)
        if wait:
            await sent(team, task)
    return task, machine(place, store, "laptop")


async def sent(team: Crew, task: BoardTask) -> None:
    """Returns when the store has what was handed in, or why not."""
    exchange = team.office.exchange
    assert exchange is not None

    async def there() -> bool:
        kept = await exchange.kept(task)
        return kept is not None and bool(kept.whole or kept.stays)

    await settled(team, there)


async def pieces(office: Office) -> tuple[int, int]:
    """How many differences and pieces the store has."""
    return await office.database.read(
        lambda reading: (
            reading.count("SELECT count(*) FROM differences"),
            reading.count("SELECT count(*) FROM difference_pieces"),
        )
    )


@pytest.mark.usefixtures("site")
async def test_approved_where_the_person_is(place: Path, store: StoreAddress) -> None:
    """The operator sees on a laptop what the server made, approves exactly that, and it takes effect in that clone;
    undo puts it back there; the store and the server keep nothing of it."""
    task, laptop = await handed_in(place, store, doing(SCRIPT))
    here, there = (place / name / "site" for name in ("laptop", "server"))
    async with open_office(laptop) as office:
        found = await office.board.get(task.id)
        work = await office.approvals.work(found)
        assert work is not None and work.agent == "ada"
        proposal = await office.approvals.look(found)
        assert proposal is not None and not proposal.conflicts
        assert {change.path for change in proposal.review.changes} == {str(here / "a.txt"), str(here / "new.txt")}
        assert not office.submissions.workspace(task.id).exists  # it was only looked at
        assert await pieces(office) == (1, 1)
        blind = await office.approvals.approve(task.id, OPERATOR, "", submission=1)
        assert blind.waiting  # an edit is not covered by a word that does not say what was seen
        ruling = await office.approvals.approve(task.id, OPERATOR, "", submission=1, digest=proposal.digest)
        assert ruling.completed
        assert await pieces(office) == (0, 0)
    async with open_office(machine(place, store, "server")) as office:
        with pytest.raises(MoveRefused, match="is completed; only what is in review"):
            await office.approvals.approve(task.id, OPERATOR, "", submission=1)
    async with open_office(laptop) as office:
        undone = undo(office.home, task.id)
        assert undone is not None
    assert (here / "a.txt").read_text() == "one\n" and not (here / "new.txt").exists()
    assert (there / "a.txt").read_text() == "one\n"
    server = machine(place, store, "server")
    assert [one.task_id for one in pendings(server)] == [task.id]
    async with open_office(server) as office:
        assert office.exchange is not None
        await office.exchange.keep_up()
    assert pendings(server) == ()


@pytest.mark.usefixtures("site")
async def test_an_agent_reviews_elsewhere(place: Path, store: StoreAddress) -> None:
    """A senior agent on another machine finds it, judges it by its evidence, and it is applied there."""
    task, _ = await handed_in(place, store, writing("new.txt", "n\n"))
    async with worker(place, store, writing("new.txt", "n\n"), CYD, "laptop") as team:
        done = await team.until(task, COMPLETED)
        assert done.made_on != team.office.machine
    assert (place / "laptop" / "site" / "new.txt").read_text() == "n\n"
    assert not (place / "server" / "site" / "new.txt").exists()


@pytest.mark.usefixtures("site")
async def test_a_conflict_elsewhere_sends_back(place: Path, store: StoreAddress) -> None:
    """Nothing is applied over what the person changed on their machine: both are shown, and it is done again."""
    task, laptop = await handed_in(place, store, doing(SCRIPT))
    (place / "laptop" / "site" / "a.txt").write_text("mine\n")
    async with open_office(laptop) as office:
        proposal = await office.approvals.look(await office.board.get(task.id))
        assert proposal is not None and [Path(one.path).name for one in proposal.conflicts] == ["a.txt"]
        ruling = await office.approvals.approve(task.id, OPERATOR, "", submission=1, digest=proposal.digest)
        assert ruling.task.state is PENDING and "changed since" in ruling.why[0]
    assert (place / "laptop" / "site" / "a.txt").read_text() == "mine\n"
    assert not (place / "laptop" / "site" / "new.txt").exists()


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("dies_at", [pytest.param("apply", marks=pytest.mark.torture), "complete"])
async def test_a_cut_approval_elsewhere_is_finished(
    place: Path, store: StoreAddress, monkeypatch: pytest.MonkeyPatch, dies_at: str
) -> None:
    """A laptop that dies before or after the files finishes it at its next start, once; until then no other machine
    may apply it."""
    task, laptop = await handed_in(place, store, writing("new.txt", "n\n"))

    async def dies(*_: object) -> object:
        raise MemoryError("killed")

    def dies_here(*_: object) -> object:
        raise MemoryError("killed")

    async with open_office(laptop) as office:
        with monkeypatch.context() as patch:
            if dies_at == "apply":
                patch.setattr(approval, "carry_out", dies_here)
            else:
                patch.setattr(office.approvals, "_complete", dies)
            with pytest.raises(MemoryError):
                await office.approvals.approve(task.id, OPERATOR, "fine", submission=1)
    async with open_office(machine(place, store, "server")) as office:
        with pytest.raises(ClaimLost, match="is being applied on"):
            await office.approvals.approve(task.id, OPERATOR, "fine", submission=1)
        assert not (place / "server" / "site" / "new.txt").exists()
    async with open_office(laptop) as office:
        assert await office.approvals.finish_cut() == (task.id,)
        assert (await office.board.get(task.id)).state is COMPLETED
    assert (place / "laptop" / "site" / "new.txt").read_text() == "n\n"


@pytest.mark.usefixtures("site")
async def test_a_rejection_from_elsewhere_takes_a_cut_apply_back(
    place: Path, store: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A laptop died after its files took effect, and meanwhile it was rejected: the next start puts them back."""
    task, laptop = await handed_in(place, store, writing("new.txt", "n\n"))

    async def dies(*_: object) -> object:
        raise MemoryError("killed")

    async with open_office(laptop) as office:
        with monkeypatch.context() as patch:
            patch.setattr(office.approvals, "_complete", dies)
            with pytest.raises(MemoryError):
                await office.approvals.approve(task.id, OPERATOR, "fine", submission=1)
    assert (place / "laptop" / "site" / "new.txt").exists()
    async with open_office(machine(place, store, "server")) as office:
        await office.approvals.reject(task.id, OPERATOR, "not this")
    async with open_office(laptop) as office:
        await office.approvals.finish_cut()
    assert not (place / "laptop" / "site" / "new.txt").exists()


@pytest.mark.usefixtures("site")
async def test_what_cannot_be_had_is_said(
    place: Path, store: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too large, not sent yet, project not here: each is a sentence, and rejecting works all the same."""
    monkeypatch.setattr(bundles, "MOST_BYTES", 1)
    task, laptop = await handed_in(place, store, doing(SCRIPT))
    async with open_office(laptop) as office:
        found = await office.board.get(task.id)
        with pytest.raises(SandboxError, match=r"MiB travel\. Look at it and approve it there"):
            await office.approvals.look(found)
        assert (await office.approvals.reject(task.id, OPERATOR, "smaller")).state is PENDING


@pytest.mark.usefixtures("site")
async def test_what_could_not_be_sent_is_sent_later(
    place: Path, store: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is away when the work is handed in gets it by the upkeep; until then others are told."""

    def away(*_: object) -> None:
        raise ActivityStoreError("away")

    with monkeypatch.context() as patch:
        patch.setattr(Exchange, "_send", away)
        task, laptop = await handed_in(place, store, doing(SCRIPT), wait=False)
    async with open_office(laptop) as office:
        with pytest.raises(SandboxError, match="not in the store yet"):
            await office.approvals.look(await office.board.get(task.id))
    async with open_office(machine(place, store, "server")) as office:
        assert office.exchange is not None
        await office.exchange.keep_up()
    async with open_office(laptop) as office:
        proposal = await office.approvals.look(await office.board.get(task.id))
        assert proposal is not None and len(proposal.review.changes) == 2


@pytest.mark.usefixtures("site")
async def test_without_the_project_it_is_read(place: Path, store: StoreAddress) -> None:
    """A machine that does not declare the project shows how it looked where it was made, and cannot approve it."""
    task, _ = await handed_in(place, store, doing(SCRIPT))
    async with open_office(machine(place, store, "phone", declared=False)) as office:
        found = await office.board.get(task.id)
        assert office.exchange is not None
        with pytest.raises(SandboxError, match=r"does not have the project git\.example\.org/site"):
            await office.approvals.look(found)
        review = await office.exchange.review(found)
        assert review is not None
        assert any("+edited" in line for change in review.changes for line in change.diff)
        with pytest.raises(SandboxError, match="does not have the project"):
            await office.approvals.approve(task.id, OPERATOR, "", submission=1)


@pytest.mark.usefixtures("site")
async def test_discarded_where_it_was_made(place: Path, store: StoreAddress) -> None:
    """What was discarded on the machine that made it can be had nowhere, and everybody is told so."""
    task, laptop = await handed_in(place, store, doing(SCRIPT))
    server = machine(place, store, "server")
    await (await asyncio.to_thread(find_pending, server, task.id)).discard()
    async with open_office(server) as office:
        assert office.exchange is not None
        await office.exchange.keep_up()
        assert (await pieces(office))[1] == 0
        await office.exchange.keep_up()
    async with open_office(laptop) as office:
        with pytest.raises(SandboxError, match="discarded or have expired"):
            await office.approvals.look(await office.board.get(task.id))


@pytest.mark.usefixtures("site")
async def test_commands_settle_it_by_hand(place: Path, store: StoreAddress) -> None:
    """`artoo diff` and `artoo apply`, in parts, work on what another machine handed in, on this machine alone from
    then on; when all of it is applied it is complete. To drop it is to reject it."""
    task, laptop = await handed_in(place, store, doing(SCRIPT))
    clone = place / "laptop" / "site"
    settings = {
        "store": store.url,
        "projects": [str(clone)],
        "workspace": str(laptop.workspace_path),
        "memory": {"enabled": False},
    }
    laptop.home.mkdir(parents=True)
    (laptop.home / "config.yaml").write_text(json.dumps(settings))
    runner = CliRunner(env={"ARTOO_HOME": str(laptop.home)})

    async def said(command: click.Command, *arguments: str) -> Result:
        return await asyncio.to_thread(runner.invoke, command, arguments)

    shown = json.loads((await said(settle_commands.diff, task.id[:13], "--json")).stdout)
    assert {change["path"] for change in shown["review"]["changes"]} == {
        str(clone / "a.txt"), str(clone / "new.txt"),
    }  # fmt: skip
    dropped = await said(settle_commands.discard, task.id)
    assert isinstance(dropped.exception, ConfigurationError) and "reject WHY" in str(dropped.exception)
    part = await said(settle_commands.apply, task.id, str(clone / "new.txt"), "--json")
    assert part.exit_code == 0 and json.loads(part.stdout)["state"] == "partly"
    assert (clone / "new.txt").exists() and (clone / "a.txt").read_text() == "one\n"
    async with open_office(laptop) as office:
        await office.approvals.finish_cut()  # as its upkeep does: what took effect here stays this machine's
    async with open_office(machine(place, store, "server")) as office:
        proposal = await office.approvals.look(await office.board.get(task.id))
        assert proposal is not None
        with pytest.raises(ClaimLost, match="is being applied on"):
            await office.approvals.approve(task.id, OPERATOR, "", submission=1, digest=proposal.digest)
    rest = await said(settle_commands.apply, task.id, "--json")
    assert rest.exit_code == 0 and json.loads(rest.stdout)["state"] == "applied"
    assert (clone / "a.txt").read_text() == "edited\n"
    async with open_office(laptop) as office:
        assert (await office.board.get(task.id)).state is COMPLETED
        assert await pieces(office) == (0, 0)
    undo(laptop.home, task.id)
    assert (clone / "a.txt").read_text() == "one\n" and not (clone / "new.txt").exists()


@pytest.mark.usefixtures("site")
async def test_done_again_on_another_machine(place: Path, store: StoreAddress) -> None:
    """What was sent back is gone on with on another machine: its submission holds what the first one did there."""
    task, laptop = await handed_in(place, store, writing("one.txt", "1\n"))
    async with open_office(laptop) as office:
        await office.approvals.reject(task.id, OPERATOR, "call it two")
        await office.board.assign(task.id, None, OPERATOR)
    trust = {"bob": TrustLevel.PROBATION}
    async with worker(place, store, writing("two.txt", "2\n"), trust, "laptop") as team:
        waiting = await team.until(task, REVIEW)
        await sent(team, waiting)
        assert (waiting.submission, waiting.made_on) == (2, team.office.machine)
    async with open_office(machine(place, store, "server")) as office:
        found = await office.board.get(task.id)
        proposal = await office.approvals.look(found)
        assert proposal is not None
        assert {Path(one.path).name for one in proposal.review.changes} == {"one.txt", "two.txt"}
        ruling = await office.approvals.approve(task.id, OPERATOR, "", submission=2)
        assert ruling.completed
    assert {"one.txt", "two.txt"} <= {path.name for path in (place / "server" / "site").iterdir()}


@pytest.mark.usefixtures("site")
async def test_a_changed_piece_is_found(place: Path, store: StoreAddress) -> None:
    """What somebody changed in the store is not laid over anybody's files."""
    task, laptop = await handed_in(place, store, doing(SCRIPT))
    with psycopg.connect(store.url, autocommit=True) as connection:
        connection.execute("UPDATE artoo.difference_pieces SET content = overlay(content placing 'X' from 9 for 1)")
    async with open_office(laptop) as office:
        with pytest.raises(ActivityStoreError, match="not whole"):
            await office.approvals.look(await office.board.get(task.id))
