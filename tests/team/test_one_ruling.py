"""One ruling on a task at a time: who waits in vain takes nothing with it, and who reads stops nobody else."""

from __future__ import annotations

import asyncio
import fcntl
import os
from contextlib import suppress
from pathlib import Path

import pytest
from team_world import Crew, crew, writing

from artoo.contracts.agents import OPERATOR, BoardState, BoardTask, TrustLevel
from artoo.contracts.errors import SandboxError
from artoo.team.locks import alone
from artoo.workspace.directory import WorkspaceInUse

ALONE = {"ada": TrustLevel.PROBATION}


async def _waiting(team: Crew, text: str = "write new.txt") -> BoardTask:
    return await team.until(await team.add(text, "ada"), BoardState.REVIEW)


def _held_elsewhere(lock: Path) -> int:
    """As another process holds it."""
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


async def test_who_is_cancelled_while_it_waits_takes_no_lock(place: Path) -> None:
    """Another process rules, who waits for it gives up: then the next one does not wait for nobody."""
    async with crew(place, writing("new.txt", "n\n"), trust=ALONE) as team:
        task = await _waiting(team)
        approvals, lock = team.office.approvals, team.office.submissions.lock(task.id)
        other = _held_elsewhere(lock)
        looking = asyncio.create_task(approvals.look(task))
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(looking), 0.2)
        assert not looking.done()
        looking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await looking
        os.close(other)
        async with asyncio.timeout(15):
            assert await approvals.look(task) is not None
        assert not lock.exists()


async def test_who_reads_one_submission_stops_no_other(place: Path) -> None:
    """While the operator reads one, another is approved, the upkeep goes on, and the first cannot be ruled on."""
    async with crew(place, writing("new.txt", "n\n"), trust=ALONE) as team:
        read, other = await _waiting(team), await _waiting(team, "write it again")
        approvals = team.office.approvals
        async with approvals.by_hand(read, applying=False), asyncio.timeout(15):
            assert (await approvals.approve(other.id, OPERATOR, "", submission=1)).completed
            assert await approvals.finish_cut() == ()
            with pytest.raises(WorkspaceInUse, match="decides on it"):
                async with alone(team.office.submissions.lock(read.id), "it", patience=0.05):
                    pass
        assert (await approvals.reject(read.id, OPERATOR, "no", submission=1)).id == read.id


async def test_those_who_wait_follow_one_another(tmp_path: Path) -> None:
    """The lock goes with its holder: each that waits makes it anew, and never two have it."""
    inside: list[int] = []

    async def one(number: int) -> None:
        async with alone(tmp_path / "there" / ".lock", "it"):
            inside.append(number)
            await asyncio.sleep(0.01)
            assert inside.pop() == number and not inside

    async with asyncio.timeout(15):
        await asyncio.gather(*map(one, range(12)))


async def test_a_lock_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """An error of the file system is one of artoo's own, which all who rule expect."""
    (tmp_path / "there").write_text("no directory")
    with pytest.raises(SandboxError, match="cannot be used"):
        async with alone(tmp_path / "there" / ".lock", "it"):
            pass
