from __future__ import annotations

from artoo.llm.client import EndpointModel
from artoo.llm.settings import Endpoint, ModelSettings
from artoo.llm.tiers import TieredModel
from artoo.ports.model import Tier
from artoo.testing import FakeClock, ScriptedTransport, ScriptPlayer

from .asking import STEP, question


async def test_questions_go_to_the_endpoint_of_their_tier():
    """Brain and tool questions reach their own models; equal endpoints share one client, made at first use."""
    players: dict[str, ScriptPlayer] = {}

    def connect(endpoint: Endpoint) -> EndpointModel:
        assert endpoint.model not in players
        player = players[endpoint.model] = ScriptPlayer({"Step": [STEP, STEP]})
        return EndpointModel(ScriptedTransport(player), endpoint.model, FakeClock())

    pair = TieredModel(ModelSettings(Endpoint("http://a/v1", "large"), Endpoint("http://a/v1", "small")), connect)
    assert not players
    await pair.ask(question())
    assert list(players) == ["small"]
    await pair.ask(question()._replace(tier=Tier.BRAIN))
    assert [len(player.requests) for player in players.values()] == [1, 1]
    await pair.close()
    await pair.close()

    one = Endpoint("http://a/v1", "same")
    shared = TieredModel(ModelSettings(one, Endpoint("http://a/v1", "same")), connect)
    await shared.ask(question())
    await shared.ask(question()._replace(tier=Tier.BRAIN))
    assert len(players["same"].requests) == 2
