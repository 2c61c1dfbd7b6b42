"""Telemetry's place on the stream: a watcher that may miss something, and never holds anybody up."""

from __future__ import annotations

import asyncio
import logging
import threading

from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import StreamClosed
from artoo.contracts.routes import ROUTES, TRANSIENT
from artoo.ports.bus import Bus, Subscription
from artoo.telemetry.measures import Measures
from artoo.telemetry.peers import Peers
from artoo.telemetry.providers import CLOSE_SECONDS, Providers
from artoo.telemetry.spans import SpanTree

logger = logging.getLogger(__name__)

CAPACITY = 16_384
"""Messages that may wait; beyond that, spans are missing, and the stream says how many messages."""

_TOLD = frozenset(ROUTES) - TRANSIENT

SLICE = 64
"""Messages between two turns of the loop, so that a burst does not keep the roles waiting."""


class Telemetry:
    """Feeds spans and measurements from the stream. `run` it in a task group; `close` ends it, within a bound."""

    def __init__(self, bus: Bus, providers: Providers, peers: Peers, *, content: bool = False) -> None:
        self._providers = providers
        self._subscription: Subscription = bus.subscribe("telemetry", kinds=_TOLD, capacity=CAPACITY)
        tracer, meter = providers.tracer, providers.meter
        self._spans = SpanTree(tracer, peers, content=content) if tracer is not None else None
        measures = Measures(meter, peers) if meter is not None else None
        self._listeners = tuple(each.hear for each in (self._spans, measures) if each is not None)
        self._failures = 0

    async def run(self) -> None:
        """Works until `close`. A message that cannot be told is logged once and left out; nothing else suffers."""
        told = 0
        while True:
            try:
                envelope = await self._subscription.receive()
            except StreamClosed:
                return
            self._tell(envelope)
            told += 1
            if told % SLICE == 0:
                await asyncio.sleep(0)

    def finish(self) -> None:
        """Nothing more comes in; `run` ends with what is queued. Idempotent."""
        self._subscription.close()

    async def close(self) -> None:
        """Ends open spans and sends what is queued, for at most `CLOSE_SECONDS`. Call it after `run` has ended."""
        if self._spans is not None:
            self._spans.close()
        if self._failures > 1:
            logger.warning("telemetry could not tell %d messages", self._failures)
        if not await _in_daemon(self._providers):
            logger.warning(
                "the collector did not take all telemetry within %g s; the rest is lost (see OTEL_EXPORTER_OTLP_*)",
                CLOSE_SECONDS,
            )

    def _tell(self, envelope: Envelope) -> None:
        for hear in self._listeners:
            try:
                hear(envelope)
            except Exception:  # telemetry's own boundary: whatever an exporter or a sampler does, the task goes on
                self._failures += 1
                if self._failures == 1:
                    logger.exception("telemetry could not tell %s %s", envelope.kind, envelope.id)


async def _in_daemon(providers: Providers) -> bool:
    """Closes in a thread that does not keep the process alive: an exporter may hang for ever."""
    loop, closed = asyncio.get_running_loop(), asyncio.Event()
    complete = False

    def close() -> None:
        nonlocal complete
        complete = providers.close_within(CLOSE_SECONDS)
        loop.call_soon_threadsafe(closed.set)

    threading.Thread(target=close, name="artoo-telemetry-close", daemon=True).start()
    await closed.wait()
    return complete
