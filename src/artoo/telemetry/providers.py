"""OpenTelemetry's SDK, set up by its own variables; every part of it is ours and none of it global.

The SDK reads the rest of its variables itself, from the process (headers, sampling, batches, resource).
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
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
CLOSE_SECONDS = 3.0
"""What is not sent by then is lost: nobody waits longer for a collector."""


@dataclass(frozen=True, slots=True)
class Providers:
    """Tracer and meter, each None when its signal goes nowhere, and how to end what is behind them."""

    tracer: Tracer | None
    meter: Meter | None
    shutdowns: tuple[Callable[[], None], ...] = ()

    def close_within(self, seconds: float) -> bool:
        """Sends what is queued and ends, all signals side by side, and waits so long. False: the time was up."""
        threads = [threading.Thread(target=shutdown, daemon=True) for shutdown in self.shutdowns]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)


def open_providers(settings: TelemetrySettings) -> Providers:
    """Exporters in threads of the SDK's own, with its bounded queues. Raises ImportError for a missing package."""
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
    """Whether the environment names the service; else it is called artoo."""
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
