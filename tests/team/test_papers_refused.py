"""What the file system refuses of the team's papers is told, and ends nothing else of the team."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from team_world import crew, settled, writing

from artoo.agents.identity.folders import create_agent
from artoo.contracts.agents import OPERATOR, BoardState, Complexity, TrustLevel
from artoo.contracts.errors import SandboxError
from artoo.runtime.changes import submissions
from artoo.team import proposal
from artoo.team import team as at_work
from artoo.testing import FakeClock

ALONE = {"ada": TrustLevel.PROBATION}


async def test_an_approval_that_cannot_be_written_down_changes_nothing(place: Path) -> None:
    """It is refused with the reason, the task stays in review, and it is approved once the way is free."""
    async with crew(place, writing("new.txt", "n\n"), trust=ALONE) as team:
        task = await team.add("write new.txt", "ada")
        await team.until(task, BoardState.REVIEW)
        approving = team.office.approvals.approve
        in_the_way = team.office.submissions.of(task.id, 1).place / "approval.json"
        in_the_way.mkdir()
        with pytest.raises(SandboxError, match="cannot be used"):
            await approving(task.id, OPERATOR, "", submission=1)
        assert (await team.office.board.get(task.id)).state is BoardState.REVIEW
        assert not (place / "project" / "new.txt").exists()
        in_the_way.rmdir()
        assert (await approving(task.id, OPERATOR, "", submission=1)).completed


@pytest.mark.parametrize("at", ["review_of", "Subject"])
async def test_a_ruling_that_is_refused_ends_nothing(place: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """While what was handed in is looked at or applied: the team goes on, and the upkeep rules on it again."""

    def fails(*_: object, **__: object) -> object:
        raise OSError(errno.EIO, "Input/output error", "/some/file")

    async with crew(place, writing("new.txt", "n\n"), trust={"cyd": TrustLevel.SENIOR}) as team:
        approvals = team.office.approvals
        with monkeypatch.context() as patch:
            patch.setattr(proposal, at, fails)
            task = await team.add("write new.txt", "cyd", Complexity.SIMPLE)
            waiting = await team.until(task, BoardState.REVIEW, BoardState.COMPLETED)
            with pytest.raises(SandboxError, match="/some/file cannot be used"):
                await approvals.pass_by_policy(waiting)
            assert await approvals.finish_cut() == ()
        await approvals.finish_cut()
        await team.until(task, BoardState.COMPLETED)
        assert (place / "project" / "new.txt").read_text() == "n\n"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left", "/a/b"), "/a/b cannot be used (No space left): free space"),
        (PermissionError(errno.EACCES, "No", b"/a/b"), "/a/b cannot be used (No): make it yours again"),
        (OSError(errno.EBADF, "Bad file", 7), "/the/place cannot be used (Bad file)"),
        (OSError(errno.ENOENT, "None", "/proc/self/fd/3/x"), "/the/place cannot be used (None)"),
        (OSError(errno.ENOENT, "None", "x.txt"), "/the/place cannot be used (None)"),
        (ConnectionResetError(errno.ECONNRESET, "Reset"), "/the/place cannot be used (Reset)"),
        (OSError("odd"), "/the/place cannot be used (odd)"),
    ],
)
def test_what_is_refused_is_named_as_a_person_finds_it(error: OSError, told: str) -> None:
    """No descriptor and no name without its directory; room is asked for only when there is none."""
    with pytest.raises(SandboxError) as raised, submissions.writing(Path("/the/place")):
        raise error
    assert str(raised.value) == told


@pytest.mark.parametrize("refused", ["papers", "step"])
async def test_the_upkeep_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch, refused: str) -> None:
    """Papers that cannot be removed, or a step that fails, keep no later step of it from being made."""
    clock = FakeClock()
    tried: list[object] = []

    def not_yours(*what: object) -> None:
        tried.append(what)
        raise PermissionError(13, "Permission denied", str(place))

    async def fails(office: object) -> None:
        tried.append(office)
        raise SandboxError("it cannot be archived")

    if refused == "step":
        monkeypatch.setattr(at_work, "archive_old", fails)
    async with crew(place, writing("new.txt", "n\n"), trust=ALONE, clock=clock) as team:
        task = await team.add("write new.txt", "ada")
        await team.until(task, BoardState.REVIEW)
        assert (await team.office.approvals.approve(task.id, OPERATOR, "", submission=1)).completed
        if refused == "papers":
            monkeypatch.setattr(submissions, "remove_tree", not_yours)
        identity = create_agent(place / "home", "eve", role="clerk", persona="new")
        await team.office.registry.register("eve", OPERATOR, sha256=identity.sha256)
        begun = len(clock.slept)
        clock.advance(at_work.ARCHIVE_AFTER.total_seconds())

        async def gave_way() -> bool:
            return at_work.RENEW_SECONDS in clock.slept[begun:]

        assert await settled(team, gave_way)
        clock.advance(at_work.RENEW_SECONDS)

        async def joined() -> bool:
            return "eve" in team.team.heartbeats

        assert await settled(team, joined)
        assert tried
