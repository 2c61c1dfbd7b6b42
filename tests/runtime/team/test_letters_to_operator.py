"""A question to the operator is left with them: a person does not answer within seconds."""

from __future__ import annotations

from pathlib import Path

from artoo import Config
from artoo.agents.folders import create_agent
from artoo.agents.standins import StandIns
from artoo.contracts.agents import OPERATOR, TrustLevel
from artoo.runtime.team.letters import Letters
from artoo.runtime.team.office import open_office

TASK = "0198f000-1111-7000-8000-000000000001"


async def test_a_question_to_the_operator_is_not_lost(tmp_path: Path) -> None:
    """It is in the operator's letters, once, with the task that it is about and how the answer reaches that; nobody
    waits, and the agent is told so."""
    config = Config.model_validate({"workspace": tmp_path / "out", "memory": {"enabled": False}})
    async with open_office(config.at_home(tmp_path / "home")) as office:
        identity = create_agent(tmp_path / "home", "bob", role="clerk", persona="exact")
        await office.registry.register("bob", OPERATOR, sha256=identity.sha256, trust=TrustLevel.STANDARD)
        standins = StandIns((), office.clock)
        letters = Letters("bob", f"{TASK}#0", office.mailbox, office.asking, (OPERATOR,), 600.0, standins)
        for _ in range(2):  # after a crash it is asked again
            said = await letters.ask(OPERATOR, "May I delete page.txt?")
            assert "is a person and answers later" in said
        found = [*await office.mailbox.list("bob", "outbox"), *await office.mailbox.list(OPERATOR, "inbox")]
        assert len({kept.mail.id for kept in found}) == 1
        kept = found[0]
        assert kept.mail.text.startswith("May I delete page.txt?")
        assert f"artoo task review {TASK} reject ANSWER" in kept.mail.text and not kept.mail.requires_reply
