"""The page of a home whose team's books lie in a store that machines share."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from artoo.contracts.agents import OPERATOR
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.config.model import Config
from artoo.store.address import StoreAddress
from artoo.team.office import open_office
from artoo.web.books import proof_of
from artoo.web.others import waiting_for_operator
from artoo.web.site import Site
from artoo.web.starting import Starter, nobody_here
from artoo.web.stream import signatures
from postgres_server import Server


async def test_what_waits_on_a_shared_board_is_on_the_first_page(
    postgres: Server, store: StoreAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the books were of the home's own, and looked at anew; a store that is away is named,
    and then nothing is proved."""
    monkeypatch.setattr("artoo.web.stream.SHARED_SECONDS", 0.000_001)
    config = Config(workspace=tmp_path / "workspace", store=store.url).at_home(tmp_path)
    site = Site(
        config, tmp_path, Starter(lambda heard: Artoo(config, environ={}, confirm=nobody_here, on_output=heard))
    )
    async with open_office(config) as office:
        added = await office.board.add("look at the roof", OPERATOR, assignee=OPERATOR)
        await office.mailbox.send(OPERATOR, OPERATOR, "the roof leaks")
    found = await waiting_for_operator(site.config)
    assert ([each.task.id for each in found.tasks], found.letters, found.why) == ([added.id], 1, "")
    assert signatures(site)["team"] != signatures(site)["team"]
    postgres.end()
    try:
        away = await waiting_for_operator(site.config)
        assert away.tasks == () and away.why
        (problem,) = (await asyncio.to_thread(proof_of, site)).problems
        assert "could not be asked" in problem.detail
    finally:
        postgres.run()
    site.indexes.close()
