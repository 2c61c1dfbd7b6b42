"""A letter whose reader is stopped goes back, and that time does not count."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from test_letters_to_nobody import hired

from artoo import Config
from artoo.agents.mail.mailbox import Mailbox
from artoo.contracts.agents import OPERATOR
from artoo.team.answering import answer
from artoo.team.bench import Bench
from artoo.team.member import Member
from artoo.team.office import open_office


async def test_a_stop_before_the_work_gives_the_letter_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The letters before it are read first; the store may be away then, and who stays waits for it."""
    looks = asyncio.Event()

    async def away(*_: object, **__: object) -> None:
        looks.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Mailbox, "earlier", away)
    config = Config.model_validate({"workspace": tmp_path / "out", "memory": {"enabled": False}})
    async with open_office(config.at_home(tmp_path / "home")) as office:
        await hired(office, "ada")
        await office.mailbox.send(OPERATOR, "ada", "hello")
        claim = await office.mailbox.take("ada")
        assert claim is not None
        bench = cast("Bench", SimpleNamespace(office=office))
        answering = asyncio.create_task(answer(bench, cast("Member", SimpleNamespace(name="ada")), claim))
        async with asyncio.timeout(10):
            await looks.wait()
        answering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answering
        again = await office.mailbox.take("ada")
        assert again is not None and again.attempts == 1
