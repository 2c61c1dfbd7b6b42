"""Windows and prices without typing, where a vendor's model is used."""

from __future__ import annotations

import pytest

from artoo.contracts.events import Usage
from artoo.llm.catalogue import listed
from artoo.llm.client import EndpointModel
from artoo.testing import FakeClock, ScriptedServer
from artoo.testing.script import ScriptPlayer
from artoo.testing.scripted_model import ScriptedTransport
from llm.asking import client_of


@pytest.mark.parametrize(
    ("base_url", "model"),
    [("https://api.openai.com/v1", "gpt-4o"), ("https://api.anthropic.com/v1", "claude-sonnet-4-5")],
)
def test_a_vendors_model_is_listed(base_url: str, model: str) -> None:
    """With its window and with its prices; cached tokens cost less."""
    found = listed(base_url, model)
    assert found.window is not None and found.window >= 100_000 and found.price is not None
    fresh = found.price.of(Usage(prompt_tokens=1_000_000))
    assert 0 < found.price.of(Usage(prompt_tokens=1_000_000, cached_tokens=1_000_000)) < fresh


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:8080/v1", "http://localhost/v1", "http://gpu:8000/v1"])
def test_a_server_of_ones_own_is_not(base_url: str) -> None:
    """Whatever it calls its model."""
    assert listed(base_url, "gpt-4o") == (None, None)


@pytest.mark.parametrize(
    ("configured", "expected"), [(50_000, 50_000), (None, 128_000)], ids=["configured", "catalogue"]
)
async def test_the_configuration_comes_before_the_catalogue(configured: int | None, expected: int) -> None:
    """And the catalogue before the default."""
    transport = ScriptedTransport(ScriptPlayer({}), name="https://api.openai.com/v1")
    model = EndpointModel(transport, "gpt-4o", FakeClock(), window=configured)
    assert (await model.known()).window == expected


async def test_an_unknown_model_has_the_default_window() -> None:
    """32,768 tokens."""
    async with ScriptedServer({}) as server, client_of(server) as model:
        assert (await model.known()).window == 32_768
