"""An attempt has a workspace of its own: handed in it becomes the submission, else nothing of it stays."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from team_world import Answering, Crew, crew, plan, settled, shell

from artoo.contracts.agents import OPERATOR, BoardState, BoardTask, TrustLevel
from artoo.contracts.criteria import Criterion, Mode, ToolSucceeded
from artoo.contracts.settling import ChangeClass
from artoo.runtime.changes.find_pending import pendings
from artoo.team import attempt
from artoo.testing import Asked, slow
from artoo.testing.replies import Scripted, with_body

REVIEW, COMPLETED, PENDING = BoardState.REVIEW, BoardState.COMPLETED, BoardState.PENDING
ALONE = {"ada": TrustLevel.PROBATION}
SENIOR = {"cyd": TrustLevel.SENIOR}
RAN = Criterion(text="it ran", mode=Mode.VERIFIABLE, check=ToolSucceeded()).model_dump(mode="json")


def appending(asked: Asked) -> Scripted:
    """A model whose every attempt adds one line to a file."""
    if asked.contract == "Plan":
        return plan("add a line", RAN, tool="shell")
    return shell("echo line >> log.txt; cat log.txt")


async def changes_of(team: Crew, task: BoardTask) -> list[tuple[str, ChangeClass]]:
    """Name and class of everything that an approval would change."""
    proposal = await team.office.approvals.look(task)
    assert proposal is not None
    return [(Path(one.path).name, one.change_class) for one in proposal.review.changes]


async def test_what_was_sent_back_is_gone_on_with(place: Path) -> None:
    """What was rejected stays in its view: the next attempt builds on it and is told so; what is approved is the
    whole difference."""
    asked: list[str] = []

    def script(one: Asked) -> Scripted:
        if one.contract == "Plan":
            asked.append(one.user)
        return appending(one)

    async with crew(place, script, trust=ALONE) as team:
        task = await team.add("write log.txt", "ada")
        await team.until(task, REVIEW)
        await team.office.approvals.reject(task.id, OPERATOR, "two lines, please")
        waiting = await second_submission(team, task)
        assert "- operator: two lines, please" in asked[1] and "in place already (log.txt)" in asked[1]
        assert await changes_of(team, waiting) == [("log.txt", ChangeClass.SILENT)]
        await team.office.approvals.approve(task.id, OPERATOR, "", submission=2)
    assert (place / "project" / "log.txt").read_text() == "line\nline\n"


async def second_submission(team: Crew, task: BoardTask) -> BoardTask:
    """The task when its second submission waits."""

    async def look() -> BoardTask | None:
        now = await team.office.board.get(task.id)
        return now if now.state is REVIEW and now.submission == 2 else None

    found = await settled(team, look)
    assert found is not None
    return found


def stopping(reached: asyncio.Event) -> Answering:
    """A model that adds a line, and then thinks for ever."""
    first = with_body({"tool": "shell"}, "echo line >> log.txt")

    def script(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return plan("add a line", RAN, tool="shell")
        if "\n[1] ok" not in asked.user:
            return first
        reached.set()
        return slow(shell("false"), 600.0)

    return script


async def stopped_in_the_middle(place: Path) -> BoardTask:
    """A task whose attempt was cut off after it had changed a file."""
    reached = asyncio.Event()
    async with crew(place, stopping(reached), trust=ALONE) as team:
        task = await team.add("write log.txt", "ada")
        async with asyncio.timeout(20):
            await reached.wait()
    return task


async def test_what_was_cut_off_is_gone_on_with(place: Path) -> None:
    """An attempt that was cut off resumes where it was: neither planned nor done again."""
    asked: list[str] = []

    def script(one: Asked) -> Scripted:
        asked.append(one.contract)
        return shell("cat log.txt")

    task = await stopped_in_the_middle(place)
    async with crew(place, script, trust=ALONE) as team:
        waiting = await team.until(task, REVIEW)
        work = team.office.submissions.of(task.id, 1).work()
        assert work is not None and work.request == "write log.txt" and len(work.calls) == 2
        await team.office.approvals.approve(task.id, OPERATOR, "", submission=waiting.submission)
    assert asked == ["ExecutorStep"]
    assert (place / "project" / "log.txt").read_text() == "line\n"


async def test_what_cannot_go_on_leaves_nothing(place: Path) -> None:
    """An attempt that was cut off and cannot be resumed is begun anew without what it had changed: nothing happens
    twice."""
    task = await stopped_in_the_middle(place)
    for log in (place / "home" / "tasks").iterdir():
        shutil.rmtree(log)
    async with crew(place, appending, trust=ALONE) as team:
        waiting = await team.until(task, REVIEW)
        await team.office.approvals.approve(task.id, OPERATOR, "", submission=waiting.submission)
    assert (place / "project" / "log.txt").read_text() == "line\n"


async def test_what_the_person_changed_begins_anew(place: Path) -> None:
    """A task that conflicts with what the person did meanwhile is done again on the files as they are now."""
    async with crew(place, appending, trust=ALONE) as team:
        task = await team.add("write log.txt", "ada")
        await team.until(task, REVIEW)
        (place / "project" / "log.txt").write_text("mine\n")
        ruling = await team.office.approvals.approve(task.id, OPERATOR, "", submission=1)
        assert ruling.task.state is PENDING and "appeared since" in ruling.task.notes[-1]
        waiting = await second_submission(team, task)
        assert await changes_of(team, waiting) == [("log.txt", ChangeClass.EDIT)]
        proposal = await team.office.approvals.look(waiting)
        assert proposal is not None
        await team.office.approvals.approve(task.id, OPERATOR, "", submission=2, digest=proposal.digest)
    assert (place / "project" / "log.txt").read_text() == "mine\nline\n"


@pytest.mark.parametrize("dies", ["before the files are joined", "before the board knows"])
async def test_work_that_was_handed_in_is_not_done_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    """A process that dies while it hands in is finished by the next one, without a question to any model."""
    calls: list[str] = []

    def script(asked: Asked) -> Scripted:
        calls.append(asked.contract)
        return appending(asked)

    reached, loop = asyncio.Event(), asyncio.get_running_loop()

    async def killed(*_: object) -> tuple[BoardTask, bool]:
        reached.set()
        raise asyncio.CancelledError

    def killed_at_the_last(*_: object) -> str:
        loop.call_soon_threadsafe(reached.set)
        raise asyncio.CancelledError

    async with crew(place, script, trust=ALONE) as team:
        with monkeypatch.context() as patch:
            if dies == "before the board knows":
                patch.setattr(team.office.board.reviews, "submit", killed)
            else:
                patch.setattr(attempt, "_handed_in", killed_at_the_last)
            task = await team.add("write log.txt", "ada")
            async with asyncio.timeout(20):
                await reached.wait()
            await team.until(task, BoardState.BLOCKED)
            before = len(calls)
    async with crew(place, script, trust=ALONE) as team:
        waiting = await team.until(task, REVIEW)
        assert len(calls) == before
        await team.office.approvals.approve(task.id, OPERATOR, "", submission=waiting.submission)
    assert (place / "project" / "log.txt").read_text() == "line\n"


async def test_a_large_project_starts_without_copying(place: Path) -> None:
    """Of a project of 2,000 files only what the task changes lies in artoo's home."""
    for number in range(20):
        directory = place / "project" / f"d{number}"
        directory.mkdir(parents=True)
        for name in range(100):
            (directory / str(name)).write_bytes(b"x")
    async with crew(place, appending, trust=ALONE) as team:
        task = await team.add("write log.txt", "ada")
        waiting = await team.until(task, REVIEW)
        workspaces = place / "home" / "workspaces"
        held = [path.name for path in workspaces.rglob("*") if path.is_file()]
        assert "log.txt" in held and len(held) < 20, held
        assert await changes_of(team, waiting) == [("log.txt", ChangeClass.SILENT)]


async def test_letters_change_nothing_unasked(place: Path) -> None:
    """What a letter's work would overwrite at the desk waits for the person, as with any task."""
    desk = place / "out" / "agents" / "cyd"
    desk.mkdir(parents=True)
    (desk / "log.txt").write_text("mine\n")
    async with crew(place, appending, trust=SENIOR) as team:
        await team.office.mailbox.send(OPERATOR, "cyd", "add a line")
        await settled(team, lambda: team.office.mailbox.list(OPERATOR, "inbox"))
        (waiting,) = await asyncio.to_thread(pendings, team.office.config)
        assert (desk / "log.txt").read_text() == "mine\n"
        await waiting.apply()
    assert (desk / "log.txt").read_text() == "mine\nline\n"
