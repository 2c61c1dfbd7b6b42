"""Open the models of a process for each tier, and list the models that a server offers.

Each tier has an endpoint, or the embedded model serves both tiers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from artoo.contracts.errors import ModelUnreachable
from artoo.llm.settings import Endpoint, ModelSettings
from artoo.llm.tiers import TieredModel
from artoo.ports.clock import Clock
from artoo.ports.model import Tier
from artoo.runtime.config.endpoints import EndpointSettings, TierName, endpoint
from artoo.runtime.config.model import Config

if TYPE_CHECKING:
    from artoo.llm.client import EndpointModel
    from artoo.llm.embedded.fetch import Report


def open_models(
    config: Config, environ: Mapping[str, str], clock: Clock, *, report: Report | None = None
) -> TieredModel:
    """Return the models of this configuration.

    Raises ConfigurationError for settings that cannot work together.
    """
    # No server is contacted, and no model is downloaded or loaded, before the first question.
    chosen = {tier: endpoint(config, name, environ) for tier, name in _TIERS.items()}
    by_endpoint = {_endpoint_of(settings): settings for settings in chosen.values()}

    def connect(wanted: Endpoint) -> EndpointModel:
        settings = by_endpoint[wanted]
        if settings is None:
            from artoo.runtime.app.embedded_model import embedded_model

            return embedded_model(config, clock, report)
        same = [each for each in chosen.values() if each is not None and _endpoint_of(each) == wanted]
        return _endpoint_model(settings, config, clock, images=any(each.images for each in same))

    brain, tool = _endpoint_of(chosen[Tier.BRAIN]), _endpoint_of(chosen[Tier.TOOL])
    return TieredModel(ModelSettings(brain=brain, tool=tool), connect)


async def served_models(config: Config, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the configured model, and the other models that its server lists, at most MOST_LISTED in total.

    Returns an empty tuple if the embedded model is used. Raises ConfigurationError for settings that cannot work.
    """
    settings = endpoint(config, "brain", environ)
    if settings is None:
        return ()
    from artoo.llm.http import HttpTransport
    from artoo.llm.sender import listed_models

    transport = HttpTransport(settings.base_url, settings.api_key or None, limit=1)
    try:
        reply = await transport.models(timeout=_LISTING_SECONDS)
        names = [str(one["id"]) for one in listed_models(reply) if one.get("id")]
    except ModelUnreachable:
        # An error is ignored, because the list is only a convenience. A request to the model will report a server
        # that cannot be reached.
        names = []
    finally:
        await transport.close()
    return tuple(dict.fromkeys([settings.model, *names]))[:MOST_LISTED]


MOST_LISTED = 200
"""Maximum number of models that are offered, because hosted services list hundreds."""
_LISTING_SECONDS = 3.0

_TIERS: dict[Tier, TierName] = {Tier.BRAIN: "brain", Tier.TOOL: "tool"}


def _endpoint_of(settings: EndpointSettings | None) -> Endpoint:
    if settings is None:
        return Endpoint(None)
    return Endpoint(settings.base_url, settings.model, settings.api_key or None, settings.wire, settings.reasoning)


def _endpoint_model(settings: EndpointSettings, config: Config, clock: Clock, *, images: bool) -> EndpointModel:
    """Return the model at an endpoint. `images`: whether the models accept images. What is set for one tier also
    applies to the other if both ask the same model."""
    # The client and aiohttp are imported only if a server is asked.
    from artoo.llm.client import EndpointModel
    from artoo.llm.dialect import DialectMemory
    from artoo.llm.http import HttpTransport
    from artoo.llm.retry import RetryPolicy

    transport = HttpTransport(settings.base_url, settings.api_key or None, limit=settings.concurrency)
    memory = DialectMemory(config.home / "cache" / "dialects.json", clock)
    return EndpointModel(
        transport,
        settings.model,
        clock,
        retry=RetryPolicy(per_call=settings.timeout),
        memory=memory,
        window=settings.context,
        images=images,
        wire=settings.wire,
        reasoning=settings.reasoning,
    )
