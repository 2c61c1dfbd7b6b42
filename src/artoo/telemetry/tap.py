"""The watcher of the stream that feeds telemetry, with its queue.

It may miss messages, but it never delays a task.
"""

from __future__ import annotations

import asyncio
import logging

from artoo.contracts.envelope import Envelope
from artoo.contracts.routes import ROUTES, TRANSIENT
from artoo.ports.bus import Bus, Subscription
from artoo.telemetry.measures import Measures
from artoo.telemetry.peers import Peers
from artoo.telemetry.providers import CLOSE_SECONDS, Providers
from artoo.telemetry.spans import SpanTree

logger = logging.getLogger(__name__)

# Maximum number of queued messages. Further messages are dropped, and the number of dropped messages is published
# on the stream.
CAPACITY = 16_384

_KINDS = frozenset(ROUTES) - TRANSIENT

# Number of messages that are processed in one turn of the event loop. It is limited, so that a burst does not delay
# the roles.
SLICE = 64


class Telemetry:
    """A watcher that builds spans and measurements from the stream.

    Start `run` in a task group. To end it, call `finish` and then `close`."""

    def __init__(self, bus: Bus, providers: Providers, peers: Peers, *, content: bool = False) -> None:
        self._providers = providers
        self._subscription: Subscription = bus.subscribe("telemetry", kinds=_KINDS, capacity=CAPACITY)
        tracer, meter = providers.tracer, providers.meter
        self._spans = SpanTree(tracer, peers, content=content) if tracer is not None else None
        measures = Measures(meter, peers) if meter is not None else None
        self._listeners = tuple(each.hear for each in (self._spans, measures) if each is not None)
        self._failures = 0

    async def run(self) -> None:
        """Process messages until `finish`. Errors never leave this method. The first error is logged."""
        heard = 0
        async for envelope in self._subscription:
            self._hear(envelope)
            heard += 1
            if heard % SLICE == 0:
                await asyncio.sleep(0)

    def finish(self) -> None:
        """Stop watching. `run` ends after the queued messages were processed. A second call has no effect."""
        self._subscription.close()

    async def close(self) -> None:
        """End the open spans and send the queued data. This takes at most `CLOSE_SECONDS`. Call it after `run` has
        ended."""
        if self._spans is not None:
            self._spans.close()
        if self._failures > 1:
            logger.warning("telemetry failed on %d messages", self._failures)
        if not await self._providers.close_within(CLOSE_SECONDS):
            logger.warning(
                "the collector did not take all telemetry within %g s; the rest is lost (see OTEL_EXPORTER_OTLP_*)",
                CLOSE_SECONDS,
            )

    def _hear(self, envelope: Envelope) -> None:
        for hear in self._listeners:
            try:
                hear(envelope)
            except Exception:  # An error of an exporter or a sampler must not reach the task.
                self._failures += 1
                if self._failures == 1:
                    logger.exception("telemetry failed on %s %s", envelope.kind, envelope.id)
