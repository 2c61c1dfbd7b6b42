"""The embedded model of a process, fetched and loaded at the first question (SPEC section 9)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from artoo.llm.client import EndpointModel
from artoo.llm.embedded.engine import EngineSettings
from artoo.llm.embedded.fetch import Report, fetch_model, silent
from artoo.llm.embedded.store import KnownModel, ModelStore
from artoo.llm.embedded.transport import EmbeddedTransport, served
from artoo.llm.retry import RetryPolicy
from artoo.llm.transport import OnEvent, TransportReply
from artoo.ports.clock import Clock
from artoo.runtime.config.model import Config, Embedded

_EMBEDDED_SECONDS = 600.0
"""One answer of the embedded model on a slow machine; the task's own time budget ends it earlier."""


class EmbeddedOnDemand:
    """The embedded model as a Transport that fetches and loads it at the first question."""

    def __init__(self, settings: Embedded, store: ModelStore, report: Report, states: Path | None = None) -> None:
        """`states`: where the engine keeps what it has read of static prompts."""
        self._settings = settings
        self._states = states
        self._store = store
        self._report = report
        self._lock = asyncio.Lock()
        self._inner: EmbeddedTransport | None = None

    @property
    def name(self) -> str:
        """The model's name or file."""
        chosen = self._chosen()
        return chosen.name if isinstance(chosen, KnownModel) else str(chosen)

    async def post(
        self,
        body: Mapping[str, object],
        *,
        timeout: float,
        path: str = "/chat/completions",
        on_event: OnEvent | None = None,
    ) -> TransportReply:
        """See Transport. Raises ModelUnreachable when the model cannot be fetched or loaded."""
        return await (await self._ready()).post(body, timeout=timeout)

    async def models(self, *, timeout: float) -> TransportReply:
        """See Transport. A known model is described without being fetched."""
        if self._inner is not None or not isinstance(chosen := self._chosen(), KnownModel):
            return await (await self._ready()).models(timeout=timeout)
        return served(chosen.name, self._engine(), chosen.size)

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
                self._inner = EmbeddedTransport(path, self._engine(), check=self._store.check_file)
            return self._inner

    def _engine(self) -> EngineSettings:
        settings = self._settings
        return EngineSettings(
            context_tokens=settings.context,
            slots=settings.slots,
            threads=settings.threads,
            prefixes=self._states / self._version() if self._states is not None else None,
        )

    def _version(self) -> str:
        """What a saved state belongs to: the model and the engine that reads it."""
        chosen = self._chosen()
        weights = chosen.sha256 if isinstance(chosen, KnownModel) else f"{chosen} {chosen.stat().st_mtime_ns}"
        try:
            engine = version("xllamacpp")
        except PackageNotFoundError:
            engine = ""
        return sha256(f"{weights} {engine} {self._settings.context}".encode()).hexdigest()[:16]


def embedded_model(config: Config, clock: Clock, report: Report | None) -> EndpointModel:
    """The embedded model as both tiers see it; `report` is told how far its download is."""
    states = config.home / "cache" / "prefixes"
    transport = EmbeddedOnDemand(config.embedded, ModelStore(config.home), report or silent, states)
    policy = RetryPolicy(attempts=1, total=_EMBEDDED_SECONDS, per_call=_EMBEDDED_SECONDS)
    return EndpointModel(transport, "embedded", clock, retry=policy)
