"""The hub's own library, in its own process, against a server that answers like the hub."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from artoo.contracts.errors import ModelUnreachable
from artoo.llm.embedded.fetch import HubSource, fetch_model

from .model_fixtures import CONTENT, MODEL, make_store


async def answer(request: web.Request) -> web.Response:
    headers = {"ETag": f'"{hashlib.sha256(CONTENT).hexdigest()}"', "X-Repo-Commit": "0" * 40}
    if request.path != "/someone/tiny/resolve/main/tiny.gguf":
        return web.Response(status=404)
    return web.Response(body=CONTENT, headers=headers)


@pytest_asyncio.fixture(loop_scope="function")
async def hub_address(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}"
    monkeypatch.setenv("HF_ENDPOINT", address)
    for proxy in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(proxy, raising=False)
    yield address
    await runner.cleanup()


async def test_a_model_comes_from_the_hub(tmp_path: Path, hub_address: str) -> None:
    """The real hub library fetches the file into the store, and leaves nothing else there."""
    store = make_store(tmp_path)
    path = await fetch_model(store, MODEL, sources=(HubSource(),))
    assert path.read_bytes() == CONTENT
    assert not store.fetch_directory(MODEL).exists()


async def test_a_hub_that_is_not_there_fails_at_once(
    tmp_path: Path, hub_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused connection is one clear line, not a minute of retries."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelUnreachable, match=r"did not give someone/tiny/tiny\.gguf: .*Connect"):
        await fetch_model(make_store(tmp_path), MODEL, sources=(HubSource(),))
