"""What the operator asks for besides is a part of the request, for whoever works on it and whoever reviews it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from team_world import crew, exists, plan, write

from artoo.contracts.agents import OPERATOR, BoardState, BoardTask, TrustLevel
from artoo.team.demands import earlier_reviews, sent_back, with_demands
from artoo.team.working import asked_for
from artoo.testing import Asked
from artoo.testing.replies import Scripted

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_task(*notes: str) -> BoardTask:
    """A task to which this was said, oldest first."""
    return BoardTask(id="t", text="fix add()", notes=notes, created_at=NOW, updated_at=NOW)


def test_what_the_operator_says_is_the_request() -> None:
    """All that the operator has said is asked for, whoever spoke last; what agents say is why it came back."""
    task = a_task("operator: add a docstring", "cyd: remove the docstring")
    assert "- operator: add a docstring" in with_demands(task) and "cyd" not in with_demands(task)
    assert asked_for(task).endswith("The last version was sent back: cyd: remove the docstring")
    assert asked_for(task).index("add a docstring") < asked_for(task).index("remove the docstring")
    assert earlier_reviews(a_task("cyd: one", "operator: two", "cyd: three").notes).endswith("too:\n- cyd: one")
    assert (
        sent_back(a_task("cyd: one", "operator: two").notes) == ""
        and with_demands(a_task("cyd: one")) == "fix add()"
    )


async def test_a_reviewer_sees_what_the_operator_wanted(place: Path) -> None:
    """An agent that reviews the next version is told what the operator sent the last one back for."""
    seen: list[Asked] = []

    def script(asked: Asked) -> Scripted:
        seen.append(asked)
        match asked.contract:
            case "Plan":
                return plan("write new.txt", exists("new.txt"))
            case "ExecutorStep":
                return write("new.txt", "n\n")
            case _:
                return {"verdict": "approve", "reasons": ["as the operator wanted it"]}

    async with crew(place, script, trust={"ada": TrustLevel.PROBATION}) as team:
        task = await team.add("write new.txt", "ada")
        await team.until(task, BoardState.REVIEW)
        await team.office.approvals.reject(task.id, OPERATOR, "end it with a line break")
        await team.until(task, BoardState.IN_PROGRESS, BoardState.REVIEW)
    async with crew(place, script, trust={"ada": TrustLevel.PROBATION, "cyd": TrustLevel.SENIOR}) as team:
        await team.until(task, BoardState.COMPLETED)
    (review,) = [asked for asked in seen if asked.contract == "ReviewReport"]
    assert "- operator: end it with a line break" in review.user
