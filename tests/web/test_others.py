"""Tasks of other machines that share a store, in the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from web_scenes import REQUEST, TASK, Writer, whole
from web_server import page_of

from artoo import Artoo, Config
from artoo.runtime.app.machine_name import machine_name
from artoo.store.address import StoreAddress
from artoo.testing import ScriptedModel
from artoo.web import others


async def test_another_machines_task_is_listed_and_read(
    tmp_path: Path, store: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that ran on a server stands in the list on a laptop, with its machine, and opens as any other."""
    monkeypatch.setattr(others, "WAITED_SECONDS", 60.0)
    server, laptop = tmp_path / "server", tmp_path / "laptop"
    Writer(server).say(whole())
    config = Config(workspace=server / "workspace", store=store.url).at_home(server)
    with ScriptedModel({}) as model:
        async with Artoo(config, environ={}, model=model):
            pass  # what is logged there is sent
    async with page_of(laptop, store=store.url) as page:
        _, text = await page.get("/")
        assert REQUEST in text and machine_name(server) in text
        status, text = await page.get(f"/tasks/{TASK}/how")
        assert status == 200 and "The loss fell by 0.52" in text
        assert (await page.get(f"/tasks/{TASK}/rows?view=all&first=0&count=5"))[0] == 200
        assert (await page.get("/tasks/nothing"))[0] == 404


async def test_a_store_that_is_away_leaves_what_is_here(tmp_path: Path) -> None:
    """This machine's tasks are shown at once."""
    Writer(tmp_path).say(whole())
    async with page_of(tmp_path, store="postgresql://nobody@/nothing?host=/nowhere") as page:
        status, text = await page.get("/")
        assert status == 200 and REQUEST in text
