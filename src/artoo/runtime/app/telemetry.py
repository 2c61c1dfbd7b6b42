"""Start the export of OpenTelemetry for a process, if its environment variables configure an exporter.

OpenTelemetry is imported only in that case (its variables begin with `OTEL_`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from artoo.bus.inprocess import InProcessBus
from artoo.runtime.config.model import Config

if TYPE_CHECKING:
    from artoo.telemetry.peers import Peers

logger = logging.getLogger(__name__)

_HINT = "OpenTelemetry is configured (%s), but its packages are not installed: pip install 'artoo[otel]'"


@asynccontextmanager
async def observed(
    bus: InProcessBus, config: Config, environ: Mapping[str, str], *, given_model: bool = False
) -> AsyncGenerator[None]:
    """Export the messages on `bus` as spans and measurements while the block runs, if `environ` configures an
    exporter."""
    if not any(name.startswith("OTEL_") for name in environ):
        yield
        return
    from artoo.telemetry.settings import telemetry_settings

    settings = telemetry_settings(environ)
    for hint in settings.hints:
        logger.warning("%s", hint)
    if not settings.wanted:
        yield
        return
    try:
        from artoo.telemetry.peers import Peer
        from artoo.telemetry.providers import open_providers
        from artoo.telemetry.tap import Telemetry

        providers = await asyncio.to_thread(open_providers, settings)
    except ImportError as error:
        logger.warning(_HINT, error)
        yield
        return
    peers: Peers = _peers(config, environ) if not given_model else dict[str, Peer]()
    telemetry = Telemetry(bus, providers, peers, content=settings.content)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(telemetry.run())
            try:
                yield
            finally:
                telemetry.finish()
    finally:
        await telemetry.close()


def _peers(config: Config, environ: Mapping[str, str]) -> Peers:
    """Return the server and the model of each tier. Raises ConfigurationError for an incomplete endpoint."""
    from artoo.runtime.config.endpoints import TIERS, endpoint
    from artoo.telemetry.peers import peer_of

    chosen = {tier: endpoint(config, tier, environ) for tier in TIERS}
    return {
        tier: peer_of(None, "embedded") if each is None else peer_of(each.base_url, each.model)
        for tier, each in chosen.items()
    }
