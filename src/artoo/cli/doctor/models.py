"""`artoo doctor` on language models, that is, endpoints, served models and local files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from artoo.cli.doctor.checks import Diagnosis, State
from artoo.contracts.errors import ConfigurationError, ModelUnreachable
from artoo.llm.embedded.store import ModelStore
from artoo.llm.transport import Json
from artoo.runtime.config.endpoints import TIERS, EndpointSettings, TierName, endpoint
from artoo.runtime.config.model import Config

PATIENCE_SECONDS = 5.0
SHOWN = 5
"""Maximum number of models of a server that are named if the configured model is not among them."""


async def models(config: Config, environ: Mapping[str, str]) -> tuple[list[Diagnosis], int]:
    """Check the model of each tier, or only one if both tiers have the same. Returns the findings, and the number
    of bytes to be downloaded."""
    chosen: dict[TierName, EndpointSettings | None] = {}
    findings: list[Diagnosis] = []
    for tier in TIERS:
        try:
            chosen[tier] = endpoint(config, tier, environ)
        except ConfigurationError as error:
            findings.append(
                Diagnosis(f"model {tier}", State.FAIL, str(error), "complete the setting, or remove it")
            )
    remote: dict[TierName, EndpointSettings] = {
        tier: settings for tier, settings in chosen.items() if settings is not None
    }
    findings += await asyncio.gather(*(_endpoint(tier, settings) for tier, settings in remote.items()))
    if None not in chosen.values():
        return findings, 0
    local, missing = await asyncio.to_thread(embedded, config)
    return [*findings, local], missing


async def _endpoint(tier: TierName, settings: EndpointSettings) -> Diagnosis:
    """Request the list of models from a server, which uses no tokens."""
    from artoo.llm.http import HttpTransport

    name, where = f"model {tier}", f"{settings.model} at {settings.base_url} ({settings.source})"
    try:
        transport = HttpTransport(settings.base_url, settings.api_key or None)
    except ConfigurationError as error:
        return Diagnosis(name, State.FAIL, f"{where}: {error}", "correct the setting, or set another endpoint")
    try:
        reply = await transport.models(timeout=PATIENCE_SECONDS)
    except ModelUnreachable as error:
        return Diagnosis(name, State.FAIL, f"{where}: {error}", "start the server, or set another endpoint")
    finally:
        await transport.close()
    if reply.status in (401, 403):
        return Diagnosis(
            name, State.FAIL, f"{where}: the key was refused ({reply.status})", "set the key's variable"
        )
    # A server without such a list may still answer requests, so this is only a warning.
    if reply.status >= 400:
        return Diagnosis(name, State.WARN, f"{where}: answers, but lists no models ({reply.status})")
    if reply.body is None:
        kind = reply.headers.get("content-type", "no content type").partition(";")[0]
        detail = f"{where}: answers with {kind}, which is no model server's answer"
        return Diagnosis(name, State.FAIL, detail, "correct the address; that of most servers ends in /v1")
    if settings.model not in (served := _served(reply.body)) and served:
        remedy = f"it has: {', '.join(served[:SHOWN])}"
        return Diagnosis(name, State.WARN, f"{where}: answers, but does not list this model", remedy)
    return Diagnosis(name, State.OK, where)


def _served(body: Json) -> list[str]:
    """Return the models in a server's list (`{"data": [{"id": …}]}`)."""
    listed = body.get("data") if isinstance(body, dict) else None
    entries = listed if isinstance(listed, list) else []
    return [str(entry["id"]) for entry in entries if isinstance(entry, dict) and "id" in entry]


def embedded(config: Config) -> tuple[Diagnosis, int]:
    """Check the file of the local model, and its hash. Returns the finding, and the number of bytes to be
    downloaded."""
    store = ModelStore(config.home)
    if config.embedded.model is not None and all(known.name != config.embedded.model for known in store.known):
        return _own_file(store, Path(config.embedded.model).expanduser()), 0
    try:
        active = store.active() if config.embedded.model is None else store.find(config.embedded.model)
    except ConfigurationError as error:
        return Diagnosis("model embedded", State.FAIL, str(error), "artoo model use NAME"), 0
    if isinstance(active, Path):
        return _own_file(store, active), 0
    size = f"{active.size / 1e6:,.0f} MB"
    if not store.path_of(active).exists():
        detail = f"{active.name} is not here yet; {size} are fetched at first use"
        return Diagnosis("model embedded", State.WARN, detail, "fetch it now: artoo model pull"), active.size
    if not store.verify(active):
        remedy = f"fetch it again: artoo model pull {active.name}"
        return Diagnosis("model embedded", State.FAIL, f"{active.name} is damaged (hash)", remedy), active.size
    return Diagnosis("model embedded", State.OK, f"{active.name}, {size}, hash verified"), 0


def _own_file(store: ModelStore, path: Path) -> Diagnosis:
    try:
        store.check_file(path)
    except ModelUnreachable as error:
        return Diagnosis("model embedded", State.FAIL, str(error), "choose another: artoo model use NAME_OR_PATH")
    return Diagnosis("model embedded", State.OK, f"{path}, {path.stat().st_size / 1e6:,.0f} MB (your own file)")
