"""Open the embedded model for both tiers, with its answer timeout; its settings are in `runtime/config/model.py`.

The model is downloaded and loaded when it is asked for the first time. Reference: SPEC section 9.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from artoo.llm.client import EndpointModel
from artoo.llm.embedded.engine import EngineSettings
from artoo.llm.embedded.fetch import Report, fetch_model, silent
from artoo.llm.embedded.store import KnownModel, ModelStore
from artoo.llm.embedded.transport import EmbeddedTransport
from artoo.llm.retry import RetryPolicy
from artoo.ports.clock import Clock
from artoo.runtime.config.model import Config, Embedded

_EMBEDDED_SECONDS = 600.0
"""Timeout of one answer, which is long because of slow machines. Usually the time budget of the task ends the call
earlier."""


def embedded_model(config: Config, clock: Clock, report: Report | None) -> EndpointModel:
    """Return the embedded model for both tiers. `report` receives the progress of its download."""
    settings, store = config.embedded, ModelStore(config.home)
    chosen = _chosen(settings, store)

    async def ready() -> Path:
        if isinstance(chosen, KnownModel):
            path = await fetch_model(store, chosen, report=report or silent)
        else:
            path = chosen
        await asyncio.to_thread(store.check_file, path)
        return path

    engine = EngineSettings(
        context_tokens=settings.context,
        slots=settings.slots,
        threads=settings.threads,
        prefixes=config.home / "cache" / "prefixes" / _version(chosen, settings),
    )
    if isinstance(chosen, KnownModel):
        name, weights = chosen.name, chosen.size
    else:
        name, weights = str(chosen), chosen.stat().st_size if chosen.exists() else 0
    transport = EmbeddedTransport(name, engine, ready, weights=weights)
    policy = RetryPolicy(attempts=1, total=_EMBEDDED_SECONDS, per_call=_EMBEDDED_SECONDS)
    return EndpointModel(transport, "embedded", clock, retry=policy)


def _chosen(settings: Embedded, store: ModelStore) -> KnownModel | Path:
    named = settings.model
    if named is None:
        return store.active()
    if any(known.name == named for known in store.known):
        return store.find(named)
    return Path(named).expanduser()


def _version(chosen: KnownModel | Path, settings: Embedded) -> str:
    """Return a name for the folder of saved model states. They are valid only for this model, engine and context
    size, so all three are in the name."""
    if isinstance(chosen, KnownModel):
        weights = chosen.sha256
    else:
        weights = f"{chosen} {chosen.stat().st_mtime_ns if chosen.exists() else 0}"
    try:
        engine = version("xllamacpp")
    except PackageNotFoundError:
        engine = ""
    return sha256(f"{weights} {engine} {settings.context}".encode()).hexdigest()[:16]
