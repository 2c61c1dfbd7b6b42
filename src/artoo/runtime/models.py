"""From the configuration to the models of a process: an endpoint per tier, or the embedded model for both."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from artoo.llm.client import EndpointModel
from artoo.llm.dialect import FileDialectMemory
from artoo.llm.embedded import EmbeddedTransport
from artoo.llm.embedded_engine import EngineSettings
from artoo.llm.model_fetch import Report, fetch_model, silent
from artoo.llm.model_store import KnownModel, ModelStore
from artoo.llm.retry import RetryPolicy
from artoo.llm.settings import Endpoint, ModelSettings
from artoo.llm.tiers import TieredModel
from artoo.llm.transport import TransportReply
from artoo.ports.clock import Clock
from artoo.ports.model import Tier
from artoo.runtime.config import Config, Embedded
from artoo.runtime.config_endpoints import EndpointSettings, TierName, endpoint

_EMBEDDED_SECONDS = 600.0
"""One answer of the embedded model on a slow machine; the task's own time budget ends it earlier."""


class EmbeddedOnDemand:
    """The embedded model as a Transport that fetches and loads it at the first question."""

    def __init__(self, settings: Embedded, store: ModelStore, report: Report) -> None:
        self._settings = settings
        self._store = store
        self._report = report
        self._lock = asyncio.Lock()
        self._inner: EmbeddedTransport | None = None

    @property
    def name(self) -> str:
        """The model's name or file."""
        chosen = self._chosen()
        return chosen.name if isinstance(chosen, KnownModel) else str(chosen)

    async def post(self, body: Mapping[str, object], *, timeout: float) -> TransportReply:
        """See Transport. Raises ModelUnreachable when the model cannot be fetched or loaded."""
        return await (await self._ready()).post(body, timeout=timeout)

    async def models(self, *, timeout: float) -> TransportReply:
        """See Transport."""
        return await (await self._ready()).models(timeout=timeout)

    async def close(self) -> None:
        """Frees the model if it was loaded. Idempotent."""
        if self._inner is not None:
            await self._inner.close()

    def _chosen(self) -> KnownModel | Path:
        named = self._settings.model
        if named is None:
            return self._store.active()
        if any(known.name == named for known in self._store.known):
            return self._store.find(named)
        return Path(named).expanduser()

    async def _ready(self) -> EmbeddedTransport:
        async with self._lock:
            if self._inner is None:
                chosen = self._chosen()
                if isinstance(chosen, KnownModel):
                    path = await fetch_model(self._store, chosen, report=self._report)
                else:
                    path = chosen
                engine = EngineSettings(
                    context_tokens=self._settings.context,
                    slots=self._settings.slots,
                    threads=self._settings.threads,
                )
                self._inner = EmbeddedTransport(path, engine, check=self._store.check_file)
            return self._inner


def open_models(
    config: Config, environ: Mapping[str, str], clock: Clock, *, report: Report = silent
) -> TieredModel:
    """The models of this configuration. Nothing is contacted, fetched or loaded before the first question.

    Raises ConfigurationError for settings that cannot work.
    """
    chosen = {tier: endpoint(config, name, environ) for tier, name in _TIERS.items()}
    by_endpoint = {_endpoint_of(settings): settings for settings in chosen.values()}

    def connect(wanted: Endpoint) -> EndpointModel:
        settings = by_endpoint[wanted]
        if settings is None:
            return _embedded_model(config, clock, report)
        return _endpoint_model(settings, config, clock)

    brain, tool = _endpoint_of(chosen[Tier.BRAIN]), _endpoint_of(chosen[Tier.TOOL])
    return TieredModel(ModelSettings(brain=brain, tool=tool), connect)


_TIERS: dict[Tier, TierName] = {Tier.BRAIN: "brain", Tier.TOOL: "tool"}


def _endpoint_of(settings: EndpointSettings | None) -> Endpoint:
    if settings is None:
        return Endpoint(None)
    return Endpoint(settings.base_url, settings.model, settings.api_key or None)


def _embedded_model(config: Config, clock: Clock, report: Report) -> EndpointModel:
    transport = EmbeddedOnDemand(config.embedded, ModelStore(config.home), report)
    policy = RetryPolicy(attempts=1, total=_EMBEDDED_SECONDS, per_call=_EMBEDDED_SECONDS)
    return EndpointModel(transport, "embedded", clock, retry=policy, compact=True)


def _endpoint_model(settings: EndpointSettings, config: Config, clock: Clock) -> EndpointModel:
    from artoo.llm.http import HttpTransport  # aiohttp only where a server is really asked

    transport = HttpTransport(settings.base_url, settings.api_key or None, limit=settings.concurrency)
    memory = FileDialectMemory(config.home / "cache" / "dialects.json", clock)
    return EndpointModel(
        transport,
        settings.model,
        clock,
        retry=RetryPolicy(per_call=settings.timeout),
        memory=memory,
        compact=True,
    )
