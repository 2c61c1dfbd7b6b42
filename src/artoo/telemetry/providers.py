"""Set up exporters, tracer and meter of OpenTelemetry's SDK, with a closing timeout.

The SDK itself reads the other variables of the environment (for headers, sampling, batches and the resource).
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version

from opentelemetry.metrics import Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
from opentelemetry.trace import Tracer

from artoo.telemetry.settings import TelemetrySettings

SCOPE = "artoo"
# Maximum wait for a collector at the end. Spans that have not been sent by then are lost.
CLOSE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Providers:
    """A tracer, a meter, and the functions that shut them down. The tracer or the meter is None if its signal has
    no exporter."""

    tracer: Tracer | None
    meter: Meter | None
    shutdowns: tuple[Callable[[], None], ...] = ()

    async def close_within(self, seconds: float) -> bool:
        """Send the queued data of all signals in parallel, and shut down. Return False after a timeout.

        Daemon threads do this, so that neither the event loop nor the process waits for a hanging exporter."""
        loop, closed = asyncio.get_running_loop(), asyncio.Semaphore(0)

        def close(shutdown: Callable[[], None]) -> None:
            shutdown()
            with suppress(RuntimeError):  # In this case the event loop has been closed in the meantime.
                loop.call_soon_threadsafe(closed.release)

        for shutdown in self.shutdowns:
            threading.Thread(target=close, args=(shutdown,), name="artoo-telemetry-close", daemon=True).start()
        try:
            async with asyncio.timeout(seconds):
                for _ in self.shutdowns:
                    await closed.acquire()
        except TimeoutError:
            return False
        return True


def open_providers(settings: TelemetrySettings) -> Providers:
    """Start the exporters in threads of the SDK, with bounded queues. Raises ImportError if a package is
    missing."""
    resource = Resource.create({"service.name": SCOPE} if not _named() else {})
    tracing = _tracing(settings, resource) if settings.traces.names else None
    metering = _metering(settings, resource) if settings.metrics.names else None
    release = version("artoo")
    shutdowns: list[Callable[[], None]] = []
    if tracing is not None:
        shutdowns.append(tracing.shutdown)
    if metering is not None:
        shutdowns.append(lambda: metering.shutdown(CLOSE_SECONDS * 1_000))
    return Providers(
        tracing.get_tracer(SCOPE, release) if tracing is not None else None,
        metering.get_meter(SCOPE, release) if metering is not None else None,
        tuple(shutdowns),
    )


def _named() -> bool:
    """Return whether the environment names the service."""
    return not str(Resource.create().attributes.get("service.name", "unknown_service")).startswith(
        "unknown_service"
    )


def _tracing(settings: TelemetrySettings, resource: Resource) -> TracerProvider:
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for name in settings.traces.names:
        if name == "console":
            provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter(out=sys.stderr)))
        else:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=settings.traces.endpoint)))
    return provider


def _metering(settings: TelemetrySettings, resource: Resource) -> MeterProvider:
    readers: list[MetricReader] = []
    for name in settings.metrics.names:
        if name == "console":
            readers.append(PeriodicExportingMetricReader(ConsoleMetricExporter(out=sys.stderr)))
        else:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

            readers.append(PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=settings.metrics.endpoint)))
    return MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
