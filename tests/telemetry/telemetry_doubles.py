"""What the tests of telemetry share: a stream with a clock of its own, and a collector that receives for real."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from artoo.bus.inprocess import InProcessBus
from artoo.contracts.base import Contract
from artoo.contracts.envelope import Envelope
from artoo.contracts.roles import Role
from artoo.telemetry.peers import Peers, peer_of
from artoo.telemetry.spans import SpanTree, nanoseconds
from artoo.testing import FakeClock, SequentialIds

PEERS: Peers = {"brain": peer_of("https://api.openai.com/v1", "gpt-x"), "tool": peer_of(None, "embedded")}
START = datetime(2026, 1, 1, tzinfo=UTC)


class Stage:
    """Says things on a real bus, second by second, and keeps the spans that come of them."""

    def __init__(self, *, content: bool = False) -> None:
        self.clock = FakeClock(start=START)
        self.bus = InProcessBus(self.clock, SequentialIds())
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tree = SpanTree(provider.get_tracer("test"), PEERS, content=content)
        self.bus.attach(self.tree.hear)

    def say(
        self, role: Role, payload: Contract, *, task: str = "t1", subtask: str | None = None, after: float = 1.0
    ) -> Envelope:
        """Publishes after `after` seconds of the stage's time."""
        self.clock.advance(after)
        return self.bus.port(role, task).publish(payload, subtask_id=subtask)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def one(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def parent_name(self, span: ReadableSpan) -> str | None:
        if span.parent is None:
            return None
        return next(each.name for each in self.spans if _id(each) == span.parent.span_id)


def _id(span: ReadableSpan) -> int:
    context = span.context
    assert context is not None
    return context.span_id


def seconds(span: ReadableSpan) -> tuple[float, float]:
    """Beginning and end, in seconds of the stage's time."""
    assert span.start_time is not None and span.end_time is not None
    zero = nanoseconds(START)
    return (span.start_time - zero) / 1e9, (span.end_time - zero) / 1e9


@dataclass(slots=True)
class Collector:
    """An OTLP/HTTP collector on 127.0.0.1. With `hang` it takes requests and never answers."""

    hang: bool = False
    traces: list[ExportTraceServiceRequest] = field(default_factory=list[ExportTraceServiceRequest])
    metrics: list[ExportMetricsServiceRequest] = field(default_factory=list[ExportMetricsServiceRequest])
    url: str = ""
    _runner: web.AppRunner | None = None
    _leaving: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def spans(self) -> list[ProtoSpan]:
        scopes = [scope for one in self.traces for each in one.resource_spans for scope in each.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    @property
    def measured(self) -> set[str]:
        scopes = [scope for one in self.metrics for each in one.resource_metrics for scope in each.scope_metrics]
        return {metric.name for scope in scopes for metric in scope.metrics}

    async def __aenter__(self) -> Collector:
        app = web.Application()
        app.router.add_post("/v1/traces", self._take_traces)
        app.router.add_post("/v1/metrics", self._take_metrics)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _take_traces(self, request: web.Request) -> web.Response:
        self.traces.append(ExportTraceServiceRequest.FromString(await request.read()))
        return await self._answer()

    async def _take_metrics(self, request: web.Request) -> web.Response:
        self.metrics.append(ExportMetricsServiceRequest.FromString(await request.read()))
        return await self._answer()

    async def _answer(self) -> web.Response:
        if self.hang:
            await self._leaving.wait()
        return web.Response(status=200, content_type="application/x-protobuf")
