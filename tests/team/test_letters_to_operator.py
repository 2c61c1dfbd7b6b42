"""A question to the operator is left with them: a person does not answer within seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from team_world import crew, exists, plan, says, write

from artoo import Config
from artoo.agents.board.operator_todo import left_to_operator
from artoo.agents.identity.folders import create_agent
from artoo.contracts.agents import OPERATOR, BoardState, TrustLevel
from artoo.team.by_hand import move
from artoo.team.letters import Letters
from artoo.team.office import open_office
from artoo.testing import Asked, with_body
from artoo.testing.replies import Scripted

TASK = "0198f000-1111-7000-8000-000000000001"


async def test_a_question_to_the_operator_is_not_lost(tmp_path: Path) -> None:
    """It is in the operator's letters, once, with the task that it is about and how the answer reaches that; nobody
    waits, and the agent is told so."""
    config = Config.model_validate({"workspace": tmp_path / "out", "memory": {"enabled": False}})
    async with open_office(config.at_home(tmp_path / "home")) as office:
        identity = create_agent(tmp_path / "home", "bob", role="clerk", persona="exact")
        await office.registry.register("bob", OPERATOR, sha256=identity.sha256, trust=TrustLevel.STANDARD)
        noted: list[tuple[str, str, str]] = []

        async def asked(task: str, agent: str, question: str) -> None:
            noted.append((task, agent, question))

        letters = Letters("bob", f"{TASK}#0", office.mailbox, office.asking, (OPERATOR,), 600.0, (), asked)
        for _ in range(2):  # after a crash it is asked again
            said = await letters.ask(OPERATOR, "May I delete page.txt?")
            assert "is a person and answers later" in said
        assert noted == [(TASK, "bob", "May I delete page.txt?")] * 2
        found = [*await office.mailbox.list("bob", "outbox"), *await office.mailbox.list(OPERATOR, "inbox")]
        assert len({kept.mail.id for kept in found}) == 1
        kept = found[0]
        assert kept.mail.text.startswith("May I delete page.txt?")
        assert f"artoo task review {TASK} reject ANSWER" in kept.mail.text and not kept.mail.requires_reply


@pytest.mark.parametrize("trust", [TrustLevel.PROBATION, TrustLevel.SENIOR])
async def test_what_goes_with_a_question_waits_for_its_answer(place: Path, trust: TrustLevel) -> None:
    """No senior and no trust completes it; the status shows the question, and the answer is in the next version."""
    reviewed: list[str] = []

    def script(asked: Asked) -> Scripted:
        match asked.contract:
            case "Plan":
                return plan(
                    "write new.txt", says("new.txt", "hello") if "in English" in asked.user else exists("new.txt")
                )
            case "ExecutorStep" if "in English" in asked.user:
                return write("new.txt", "hello\n")
            case "ExecutorStep" if "answers later" in asked.user:
                return write("new.txt", "hallo\n")
            case "ExecutorStep":
                return with_body({"tool": "ask_agent", "input": "operator"}, "In which language?", "text")
            case _:
                reviewed.append(asked.user)
                return {"verdict": "approve"}

    async with crew(place, script, trust={"ada": trust, "cyd": TrustLevel.SENIOR}) as team:
        office = team.office
        task = await team.add("write a greeting to new.txt", "ada")
        waiting = await team.left_to_operator(task)
        (left,) = await left_to_operator(office.database, office.policies)
        assert left.why == "asks: In which language? (artoo task review ID reject ANSWER, or approve)"
        assert not reviewed and waiting.state is BoardState.REVIEW
        await office.approvals.reject(task.id, OPERATOR, "in English", submission=1)
        if trust is TrustLevel.SENIOR:
            await team.until(task, BoardState.COMPLETED)
            assert (team.project / "new.txt").read_text() == "hello\n"
        else:  # what is edited by then is the operator's to agree to; the senior was asked all the same
            await team.until(task, BoardState.COMPLETED, BoardState.REVIEW)
        assert await left_to_operator(office.database, office.policies) == ()


async def test_a_question_of_the_planner_is_shown_with_how_it_is_answered(place: Path) -> None:
    """The task says what it asks, and goes on with the answer."""

    def script(asked: Asked) -> Scripted:
        if asked.contract == "Plan" and "the red one" not in asked.user:
            return {"question": "Which one is meant?"}
        return plan("write it", exists("red.txt")) if asked.contract == "Plan" else write("red.txt", "r\n")

    async with crew(place, script, trust={"ada": TrustLevel.SENIOR}) as team:
        task = await team.add("write the file", "ada")
        await team.until(task, BoardState.FAILED)
        (left,) = await left_to_operator(team.office.database, team.office.policies)
        assert left.why == "asks: Which one is meant? (artoo task move ID pending ANSWER)"
        await move(team.office, task.id, BoardState.PENDING, "the red one")
        await team.until(task, BoardState.COMPLETED)
        assert not await left_to_operator(team.office.database, team.office.policies)
