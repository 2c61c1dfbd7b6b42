"""Files reach the project only at an approval that Law 1 lets happen; otherwise the task waits, with the reason."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from team_world import crew, plan, shell, writing

from artoo.contracts.agents import OPERATOR, BoardState, BoardTask, Complexity, TaskChanged, TrustLevel
from artoo.contracts.errors import ActorRefused, ClaimLost, GovernanceRefused, SandboxError
from artoo.contracts.execution import CriterionVerdict
from artoo.contracts.solution import Directive, FinalResult
from artoo.runtime.changes.find_pending import find_pending
from artoo.team import approval
from artoo.team.reviewing import problems_of
from artoo.team.working import Gathering
from artoo.testing import Asked
from artoo.testing.replies import Scripted
from artoo.workspace.commit import undo

REVIEW, COMPLETED, PENDING = BoardState.REVIEW, BoardState.COMPLETED, BoardState.PENDING
SENIOR = {"cyd": TrustLevel.SENIOR}
PAIR = {"ada": TrustLevel.PROBATION, "cyd": TrustLevel.SENIOR}
ALONE = {"ada": TrustLevel.PROBATION}


async def test_overwriting_waits_for_the_operator(place: Path) -> None:
    """A senior agent's approval does not cover an overwrite: the task stays in review, the reason is on record, and
    the operator's consent to exactly these changes completes it; undo puts the old content back."""
    (place / "project").mkdir()
    (place / "project" / "a.txt").write_text("mine\n")
    async with crew(place, writing("a.txt", "theirs\n"), trust=PAIR) as team:
        task = await team.add("write a.txt anew", "ada")
        waiting = await team.left_to_operator(task)
        assert (place / "project" / "a.txt").read_text() == "mine\n"
        log = await team.office.board.log(task.id)
        assert "what is there now is overwritten" in next(one.detail for one in log if isinstance(one, TaskChanged))
        proposal = await team.office.approvals.look(waiting)
        assert proposal is not None
        approvals, number = team.office.approvals, waiting.submission
        blind = await approvals.approve(task.id, OPERATOR, "fine", submission=number)
        assert blind.waiting and (place / "project" / "a.txt").read_text() == "mine\n"
        ruling = await approvals.approve(task.id, OPERATOR, "fine", submission=number, digest=proposal.digest)
        assert ruling.completed
        assert (place / "project" / "a.txt").read_text() == "theirs\n"
        undo(team.office.home, task.id)
        assert (place / "project" / "a.txt").read_text() == "mine\n"


async def test_a_policy_line_agrees(place: Path) -> None:
    """A standing permission that names the act lets an agent's approval merge it, and stands in the record."""
    (place / "project").mkdir()
    (place / "project" / "a.txt").write_text("mine\n")
    async with crew(place, writing("a.txt", "theirs\n"), trust=SENIOR, allow=("edits a.txt",)) as team:
        task = await team.add("write a.txt anew", "cyd")
        await team.until(task, COMPLETED)
        assert (place / "project" / "a.txt").read_text() == "theirs\n"


@pytest.mark.parametrize("settled", ["apply", "discard"])
async def test_what_was_settled_by_hand(place: Path, settled: str) -> None:
    """What the operator applied by hand needs no second apply to be complete; what is gone is never called done."""
    async with crew(place, writing("new.txt", "n\n"), trust=ALONE) as team:
        task = await team.add("write new.txt", "ada")
        await team.until(task, REVIEW)
        waiting = await asyncio.to_thread(find_pending, team.office.config, task.id)
        approving = team.office.approvals.approve
        if settled == "apply":
            await waiting.apply()
            assert (await approving(task.id, OPERATOR, "", submission=1)).completed
        else:
            await waiting.discard()
            with pytest.raises(SandboxError, match="reject it"):
                await approving(task.id, OPERATOR, "", submission=1)
            assert (await team.office.board.get(task.id)).state is REVIEW


async def test_only_what_was_looked_at_is_approved(place: Path) -> None:
    """Files that are not as they were when the operator looked are not applied, though nothing in them asks."""
    async with crew(place, writing("new.txt", "n\n"), trust=ALONE) as team:
        task = await team.add("write new.txt", "ada")
        await team.until(task, REVIEW)
        approving = team.office.approvals.approve
        with pytest.raises(ClaimLost, match="look again"):
            await approving(task.id, OPERATOR, "", submission=1, digest="0" * 64)
        assert not (place / "project" / "new.txt").exists()
        assert (await approving(task.id, OPERATOR, "", submission=1)).completed


async def test_trust_does_not_cover_losses(place: Path) -> None:
    """What trust leaves unreviewed still waits for the operator when it would delete something."""
    (place / "project").mkdir()
    (place / "project" / "old.txt").write_text("mine\n")

    def script(asked: Asked) -> Scripted:
        if asked.contract == "Plan":
            return plan("remove old.txt", {"text": "it ran", "check": {"check": "tool_succeeded"}}, tool="shell")
        return shell("rm old.txt && echo removed")

    async with crew(place, script, trust=SENIOR) as team:
        task = await team.add("remove old.txt", "cyd", Complexity.SIMPLE)
        await team.left_to_operator(task)
        assert (place / "project" / "old.txt").exists()


async def test_conflict_sends_back(place: Path) -> None:
    """A file that the user changed meanwhile is kept: nothing is merged, and the task is to be done again."""
    async with crew(place, writing("new.txt", "theirs\n"), trust=ALONE) as team:
        task = await team.add("write new.txt", "ada")
        waiting = await team.until(task, REVIEW)
        (place / "project" / "new.txt").write_text("mine\n")
        await team.office.registry.pause("ada", OPERATOR)
        ruling = await team.office.approvals.approve(task.id, OPERATOR, "", submission=waiting.submission)
        assert not ruling.completed and not ruling.waiting
        assert ruling.task.state is PENDING
        assert "appeared since" in ruling.task.notes[-1]
        assert (place / "project" / "new.txt").read_text() == "mine\n"


async def test_own_submission_and_old_submission(place: Path) -> None:
    """Nobody approves their own submission, nor one that they did not look at."""
    async with crew(place, writing("new.txt", "n\n"), trust=ALONE) as team:
        task = await team.add("write new.txt", "ada")
        await team.until(task, REVIEW)
        with pytest.raises(ActorRefused):
            await team.office.approvals.approve(task.id, "ada", "", submission=1)
        with pytest.raises(ClaimLost):
            await team.office.approvals.approve(task.id, OPERATOR, "", submission=2)
        assert not (place / "project" / "new.txt").exists()


@pytest.mark.parametrize("dies_at", ["apply", "complete"])
async def test_cut_approval_is_finished(place: Path, monkeypatch: pytest.MonkeyPatch, dies_at: str) -> None:
    """A process that dies before or after its files leaves an approval that the next start finishes, once."""
    async with crew(place, writing("new.txt", "n\n"), trust=ALONE) as team:
        task = await team.add("write new.txt", "ada")
        waiting = await team.until(task, REVIEW)

        async def dies(*_: object) -> object:
            raise MemoryError("killed")

        def dies_here(*_: object) -> object:
            raise MemoryError("killed")

        with monkeypatch.context() as patch:
            if dies_at == "apply":
                patch.setattr(approval, "carry_out", dies_here)
            else:
                patch.setattr(team.office.approvals, "_complete", dies)
            with pytest.raises(MemoryError):
                await team.office.approvals.approve(task.id, OPERATOR, "fine", submission=waiting.submission)
        assert (await team.office.board.get(task.id)).state is REVIEW
        assert await team.office.approvals.finish_cut() == (task.id,)
        assert (await team.office.board.get(task.id)).state is COMPLETED
        assert (place / "project" / "new.txt").read_text() == "n\n"
        assert [move for move in await team.moves(task) if "completed" in move] == [
            "review > completed by operator"
        ]


async def test_a_second_approval_undoes_nothing(place: Path) -> None:
    """Two that approve the same at once complete it once, and the merge stays."""
    async with crew(place, writing("new.txt", "n\n"), trust=SENIOR) as team:
        task = await team.add("write new.txt", "cyd", Complexity.SIMPLE)
        waiting = await team.until(task, REVIEW, COMPLETED)
        stale = waiting.model_copy(update={"state": REVIEW})
        rulings = await asyncio.gather(*(team.office.approvals.pass_by_policy(stale) for _ in range(3)))
        assert all(ruling.completed for ruling in rulings)
        assert await team.office.approvals.finish_cut() == ()
        assert (place / "project" / "new.txt").read_text() == "n\n"


async def test_rejecting_a_cut_approval_takes_its_merge_back(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the operator rejects what a dead process had merged but not completed, the files go again."""
    async with crew(place, writing("new.txt", "n\n"), trust=ALONE) as team:
        task = await team.add("write new.txt", "ada")
        waiting = await team.until(task, REVIEW)
        await team.office.registry.pause("ada", OPERATOR)

        async def dies(*_: object) -> object:
            raise MemoryError("killed")

        with monkeypatch.context() as patch:
            patch.setattr(team.office.approvals, "_complete", dies)
            with pytest.raises(MemoryError):
                await team.office.approvals.approve(task.id, OPERATOR, "fine", submission=waiting.submission)
        assert (place / "project" / "new.txt").exists()
        await team.office.approvals.reject(task.id, OPERATOR, "on second thoughts, no")
        assert not (place / "project" / "new.txt").exists()
        assert await team.office.approvals.finish_cut() == ()


async def test_rejected_while_approved(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the board refuses the move after the merge, the merge is taken back."""
    async with crew(place, writing("new.txt", "n\n"), trust=ALONE) as team:
        task = await team.add("write new.txt", "ada")
        waiting = await team.until(task, REVIEW)

        async def refuses(*_: object) -> object:
            raise GovernanceRefused("somebody else was faster")

        monkeypatch.setattr(team.office.approvals, "_complete", refuses)
        with pytest.raises(GovernanceRefused):
            await team.office.approvals.approve(task.id, OPERATOR, "fine", submission=waiting.submission)
        assert not (place / "project" / "new.txt").exists()


async def test_dossier_holds_the_evidence(place: Path) -> None:
    """What is handed in comes with criteria, verdicts and calls, and is bound to its files."""
    async with crew(place, writing("new.txt", "n\n"), trust=ALONE) as team:
        task = await team.add("write new.txt", "ada")
        waiting = await team.until(task, REVIEW)
        work = team.office.submissions.of(task.id, waiting.submission).work()
        assert work is not None and work.digest
        assert work.run and work.ending == "accept" and problems_of(work) == ()
        assert any("new.txt has the text" in verdict.criterion for verdict in work.verdicts)


def test_a_criterion_is_told_once() -> None:
    """What the only subtask and the task both ask for stands once in what is reviewed; other evidence stays."""
    same = CriterionVerdict(criterion="new.txt exists", verdict="pass", evidence="it is there")
    other = same.model_copy(update={"evidence": "it was listed"})
    gathering = Gathering("run", verdicts=(same, same, other))
    result = FinalResult(task_id="t", summary="s", output="", directive=Directive.ACCEPT)
    assert gathering.dossier(result, "t", 1, "ada").verdicts == (same, other)


def test_code_rejects_first() -> None:
    """Unmet criteria, withheld acts and contradicted evidence are reasons without any model."""
    from artoo.contracts.agents import SubmittedWork
    from artoo.contracts.execution import CriterionVerdict

    work = SubmittedWork(
        board_task="t",
        submission=1,
        agent="ada",
        run="r",
        request="x",
        summary="s",
        ending="success",
        unmet=("b is there",),
        withheld=("rm a",),
        verdicts=(
            CriterionVerdict(criterion="c", verdict="fail"),
            CriterionVerdict(criterion="d", verdict="fail", contradicted=True),
        ),
    )
    assert problems_of(work) == (
        "not met: b is there",
        "not done, because it needed consent: rm a",
        "not met: c",
        "the evidence contradicts it: d",
    )


async def test_what_has_lost_its_evidence_is_no_more_than_a_claim(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody's trust lets files take effect of which nothing says any more how far they were checked."""
    passing = approval.Approvals.pass_by_policy

    async def damaged(self: approval.Approvals, task: BoardTask) -> approval.Ruling:
        (dossier,) = await asyncio.to_thread(lambda: list(place.rglob("dossier.json")))
        dossier.write_text("{")
        return await passing(self, task)

    monkeypatch.setattr(approval.Approvals, "pass_by_policy", damaged)
    async with crew(place, writing("new.txt", "n\n"), trust=SENIOR) as team:
        task = await team.add("write new.txt", "cyd", Complexity.SIMPLE)
        async with asyncio.timeout(20):
            await team.left_to_operator(task)
        assert not (place / "project" / "new.txt").exists()
