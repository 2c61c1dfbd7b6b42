"""What the log of a run says of its changes, where the run was work on a task of the board."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from team_world import Crew, crew, exists, plan, write, writing

from artoo.cli.main import main
from artoo.contracts.agents import OPERATOR, BoardState, BoardTask, TrustLevel
from artoo.runtime.changes.settlement_history import Afterwards, SettledBooks
from artoo.tasklog.reader import list_tasks, summary_of
from artoo.team.by_hand import move
from artoo.testing import Asked
from artoo.testing.replies import Scripted

ALONE = {"ada": TrustLevel.PROBATION}


async def submitted(team: Crew) -> BoardTask:
    """A task whose submission waits for the operator."""
    task = await team.add("write new.txt", "ada")
    return await team.until(task, BoardState.REVIEW)


async def afterwards(team: Crew, task: BoardTask) -> Afterwards:
    """What the log of the task's run says once its end is in it: the board knows of that first."""
    home = team.office.home
    assert task.run is not None
    async with asyncio.timeout(30):
        while (told := summary_of(home, task.run)) is None or told.result is None:  # noqa: ASYNC110 (a file)
            await asyncio.sleep(0.02)
    return SettledBooks.of(home).afterwards(task.run, told.result.changes)


async def test_an_approval_ends_the_wait_of_its_run(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run's log says that its changes wait, and where they are reviewed; then that they were applied."""
    async with crew(place, writing("new.txt", "hello\n"), trust=ALONE) as team:
        task = await submitted(team)
        assert (await afterwards(team, task)).state == "waits"
        monkeypatch.setenv("ARTOO_HOME", str(team.office.home))
        assert main(["log", "show", task.run or ""]) == 0
        told = capsys.readouterr().out
        assert f"artoo task show {task.id[:8]}" in told and "artoo apply" not in told
        await team.office.approvals.approve(task.id, OPERATOR, "", submission=1)
        assert (await afterwards(team, task)).state == "applied"
        (one,) = list_tasks(team.office.home)
        assert one.task_id == task.run
        assert main(["log", "list"]) == 0 and "applied" in capsys.readouterr().out


async def test_a_cancelled_task_ends_the_wait_of_its_run(place: Path) -> None:
    """When it is archived, its work goes, and the run's log says so."""
    async with crew(place, writing("new.txt", "hello\n"), trust=ALONE) as team:
        task = await submitted(team)
        await move(team.office, task.id, BoardState.CANCELLED, "no")
        await move(team.office, task.id, BoardState.ARCHIVED, "")
        after = await afterwards(team, task)
        assert after.state == "discarded" and after.waited is None
        assert not (place / "project" / "new.txt").exists()


async def test_what_a_failed_attempt_left_is_dropped_by_the_next(place: Path) -> None:
    """Nothing of it was handed in: its log says that it is gone, whatever becomes of what the next one makes."""
    tried: list[str] = []

    def script(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return plan("write new.txt", exists("new.txt" if tried else "other.txt"))
        return write("new.txt", "hello\n")

    async with crew(place, script, trust=ALONE) as team:
        task = await team.add("write new.txt", "ada")
        failed = await team.until(task, BoardState.FAILED)
        assert (await afterwards(team, failed)).state in ("waits", "waited")
        tried.append("once")
        await move(team.office, task.id, BoardState.PENDING, "")
        await team.until(task, BoardState.REVIEW)
        await team.office.approvals.approve(task.id, OPERATOR, "", submission=1)
        assert (await afterwards(team, failed)).state == "discarded"
        assert (await afterwards(team, await team.office.board.get(task.id))).state == "applied"
