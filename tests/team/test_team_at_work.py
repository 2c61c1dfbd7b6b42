"""A team takes tasks from the board: views, submissions, reviews, approvals, letters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from team_world import crew, exists, plan, says, write

from artoo.contracts.agents import OPERATOR, BoardState, Complexity
from artoo.contracts.events import ModelCalled
from artoo.team.approval import Approvals
from artoo.testing import Asked, with_body
from artoo.testing.replies import Scripted
from artoo.workspace.directory import WorkspaceInUse


async def test_three_tasks_to_the_archive(place: Path) -> None:
    """Probation, standard and senior each bring a task from the board to the archive; one is rejected once."""
    reviews: list[str] = []

    def script(asked: Asked) -> Scripted:
        # By the request: the names alone are in the listing of the project too, once a file was applied.
        name = next(word for word in ("alpha", "beta", "gamma") if f"write {word}.txt" in asked.user)
        match asked.contract:
            case "Plan":
                again = "sent back" in asked.user
                wanted = says(f"{name}.txt", "right") if again else exists(f"{name}.txt")
                return plan(f"write {name}.txt", wanted)
            case "ExecutorStep":
                better = "sent back" in asked.user or name != "alpha"
                return write(f"{name}.txt", f"{name} {'right' if better else 'wrong'}\n")
            case "ReviewReport":
                reviews.append(asked.user)
                wrong = "+alpha wrong" in asked.user
                return {"verdict": "reject", "reasons": ["it says wrong"]} if wrong else {"verdict": "approve"}
            case _:
                raise AssertionError(asked.contract)

    (place / "project").mkdir()
    (place / "project" / "AGENTS.md").write_text("One line a file.\n")
    async with crew(place, script) as team:
        alpha = await team.add("write alpha.txt with a line", "ada", Complexity.SIMPLE)
        beta = await team.add("write beta.txt with a line", "bob", Complexity.SIMPLE)
        gamma = await team.add("write gamma.txt with a line", "cyd", Complexity.CRITICAL)
        for task in (alpha, beta, gamma):
            done = await team.until(task, BoardState.COMPLETED, BoardState.FAILED)
            assert done.state is BoardState.COMPLETED, (done, await team.moves(task))
            await team.office.archive(task.id, OPERATOR)
        assert await team.moves(alpha) == [
            "- > pending by operator",
            "pending > in_progress by ada",
            "in_progress > review by ada",
            "review > rejected by cyd",
            "rejected > pending by cyd",
            "pending > in_progress by ada",
            "in_progress > review by ada",
            "review > completed by cyd",
            "completed > archived by operator",
        ]
        assert "review > completed by policy" in await team.moves(beta)
        assert "review > completed by policy" in await team.moves(gamma)
        assert len(reviews) == 2 and all("One line a file." in shown for shown in reviews)
        for work in ("workspaces", "submissions"):
            assert not list((place / "home" / work).glob("0*"))
    assert (place / "project" / "alpha.txt").read_text() == "alpha right\n"
    assert (place / "project" / "beta.txt").exists() and (place / "project" / "gamma.txt").exists()
    systems = {one.payload.system for one in team.envelopes if isinstance(one.payload, ModelCalled)}
    assert all("You are " in system for system in systems)


@pytest.mark.parametrize("looked_at", [False, True])
async def test_a_claim_that_nothing_confirms_is_not_passed_by_trust(
    place: Path, monkeypatch: pytest.MonkeyPatch, *, looked_at: bool
) -> None:
    """No call was made: the model says that it is done, and the operator looks at that. `looked_at`: somebody has
    it before them when it is handed in, and the upkeep rules on it later."""

    async def in_use(*_: object) -> object:
        raise WorkspaceInUse("somebody looks at it")

    def script(asked: Asked) -> Scripted:
        match asked.contract:
            case "Plan":
                return plan("write it well", "it is written well")
            case "ExecutorStep":
                return with_body({"tool": "answer", "sources": []}, "I did it.", "text")
            case _:
                raise AssertionError(asked.contract)

    (place / "project").mkdir()
    async with crew(place, script) as team:
        if looked_at:
            monkeypatch.setattr(Approvals, "pass_by_policy", in_use)
        task = await team.add("write it well", "bob", Complexity.SIMPLE)
        if looked_at:
            await team.until(task, BoardState.REVIEW)
            assert await team.office.approvals.finish_cut() == ()
        left = await team.left_to_operator(task)
        assert left.state is BoardState.REVIEW
        assert "review > completed by policy" not in await team.moves(left)


def test_one_machine_loads_nothing_of_several() -> None:
    """Without a store neither the driver nor what only several machines need is imported."""
    code = (
        "import sys, artoo.team.team, artoo.team.by_hand, artoo.web.team;"
        " print([name for name in sys.modules if name.startswith(('artoo.cluster', 'psycopg'))])"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout == "[]\n"
