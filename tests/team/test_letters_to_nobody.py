"""An agent's letters to one that is not there: refused, with the names of those who are."""

from __future__ import annotations

from pathlib import Path

import pytest

from artoo import Config
from artoo.agents.identity.folders import create_agent
from artoo.contracts.agents import OPERATOR
from artoo.contracts.errors import MailRefused, ToolError
from artoo.team.letters import Letters
from artoo.team.office import Office, open_office
from artoo.tools.builtin.mail import mail_tools


async def hired(office: Office, *names: str) -> None:
    """Agents with folders that are accepted."""
    for name in names:
        identity = create_agent(office.home, name, role="clerk", persona="exact")
        await office.registry.register(name, OPERATOR, sha256=identity.sha256)


def letters_of(office: Office, name: str, *known: str, standins: tuple[str, ...] = ()) -> Letters:
    """Its way to the mailbox; nobody asks the operator here."""

    async def asked(task: str, agent: str, question: str) -> None:
        raise AssertionError

    return Letters(name, "work", office.mailbox, office.asking, known, 0.1, standins, asked)


@pytest.mark.parametrize("gone", ["ben", "zoe"])
async def test_an_agent_learns_that_nobody_would_read_it(tmp_path: Path, gone: str) -> None:
    """By both tools: of one that never was, and of one whose folder is gone. Nothing lies in an inbox."""
    config = Config.model_validate({"workspace": tmp_path / "out", "memory": {"enabled": False}})
    async with open_office(config.at_home(tmp_path / "home")) as office:
        await hired(office, "ada", "ben", "cyd")
        (office.home / "agents" / "ben").rename(tmp_path / "aside")
        for tool in mail_tools(letters_of(office, "ada", "ben", "cyd")):
            with pytest.raises(ToolError, match="known: operator, ada, cyd"):
                await tool.run({"to": gone, "text": "are you there?"})
        assert not await office.mailbox.sent("ada")


async def test_a_stand_in_that_is_gone_is_no_error(tmp_path: Path) -> None:
    """Who was meant is there and silent; that nobody stands in for it ends nothing."""
    config = Config.model_validate({"workspace": tmp_path / "out", "memory": {"enabled": False}})
    async with open_office(config.at_home(tmp_path / "home")) as office:
        await hired(office, "ada", "ben")
        letters = letters_of(office, "ada", "ben", standins=("zoe",))
        assert "no answer from ben" in await letters.ask("ben", "are you there?")
        with pytest.raises(MailRefused, match="zoe"):
            await letters.ask("zoe", "are you there?")
