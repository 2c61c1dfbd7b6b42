"""Telemetry of whole tasks: off by default, sent to a real collector when wanted, harmless when that is sick."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from collections.abc import Mapping
from pathlib import Path
from time import monotonic

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from telemetry_doubles import PEERS, Collector

from artoo import Artoo, Config, RunOptions
from artoo.bus.inprocess import InProcessBus
from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled, Usage
from artoo.contracts.execution import CallStatus, ToolCall, ToolCalled
from artoo.contracts.request import UserRequest
from artoo.contracts.roles import Role
from artoo.contracts.solution import Cost, Directive, FinalResult, Money, StoppedBy
from artoo.runtime.app.telemetry import observed
from artoo.telemetry import providers, tap
from artoo.telemetry.measures import Measures
from artoo.telemetry.peers import peer_of
from artoo.telemetry.settings import telemetry_settings
from artoo.telemetry.spans import SpanTree
from artoo.testing import FakeClock, ScriptedModel, SequentialIds, with_body

ANSWERED = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}

SCRIPT = {
    "Plan": {"subtasks": [{"intent": "count the lines", "tool": "shell", "success_criteria": [ANSWERED]}]},
    "ExecutorStep": with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt"),
}


async def run_task(tmp_path: Path, environ: Mapping[str, str]) -> FinalResult:
    """One small task on a scripted model, with these variables."""
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    (project / "a.txt").write_text("x\ny\n")
    config = Config(workspace=tmp_path / "workspace").at_home(tmp_path / "home")
    with ScriptedModel(SCRIPT) as model:
        async with Artoo(config, environ=environ, model=model) as artoo:
            return await artoo.run("How many lines has a.txt?", options=RunOptions(project=project))


async def test_a_collector_receives_the_trace_and_the_measurements(tmp_path: Path) -> None:
    """With the standard endpoint set, one task arrives as one whole trace and as measurements, content left out."""
    async with Collector() as collector:
        result = await run_task(tmp_path, {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
    assert (result.directive, result.output) == (Directive.ACCEPT, "2")
    by_id = {span.span_id: span for span in collector.spans}
    names = {span.name: by_id[span.parent_span_id].name if span.parent_span_id else "" for span in by_id.values()}
    assert names["invoke_workflow artoo"] == ""
    assert names["round"] == "invoke_workflow artoo"
    assert names["invoke_agent executor"] == "round"
    assert names["execute_tool shell"] == "invoke_agent executor"
    assert len({span.trace_id for span in collector.spans}) == 1
    assert {"gen_ai.client.token.usage", "gen_ai.client.operation.duration", "artoo.tasks"} <= collector.measured
    resources = [each.resource for one in collector.traces for each in one.resource_spans]
    assert {"artoo"} == {a.value.string_value for r in resources for a in r.attributes if a.key == "service.name"}
    assert b"wc -l" not in b"".join(one.SerializeToString() for one in collector.traces)


async def test_content_is_sent_on_request_only(tmp_path: Path) -> None:
    """The conventions' own variable switches prompts, answers and commands on."""
    wanted = {
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
    }
    async with Collector() as collector:
        endpoint = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.url}/v1/traces"}
        await run_task(tmp_path, {**wanted, **endpoint})
    assert b"wc -l" in b"".join(one.SerializeToString() for one in collector.traces)
    assert collector.metrics == []


async def test_a_collector_that_hangs_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The task ends as ever; closing waits for its bound and no longer, and says that something was lost."""
    monkeypatch.setattr(tap, "CLOSE_SECONDS", 0.3)
    monkeypatch.setattr(providers, "CLOSE_SECONDS", 0.3)
    async with Collector(hang=True) as collector:
        started = monotonic()
        result = await run_task(tmp_path, {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
        assert monotonic() - started < 20
    assert result.directive is Directive.ACCEPT
    assert "the rest is lost" in caplog.text


async def test_telemetry_that_fails_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever goes wrong in making spans is logged, and the task ends as ever, with its measurements."""

    def broken(self: SpanTree, envelope: Envelope) -> None:
        raise RuntimeError("no span today")

    monkeypatch.setattr(SpanTree, "hear", broken)
    async with Collector() as collector:
        result = await run_task(tmp_path, {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
    assert result.directive is Directive.ACCEPT
    assert caplog.text.count("RuntimeError: no span today") == 1
    assert "artoo.tasks" in collector.measured


async def test_an_error_in_the_body_still_sends_what_was_seen(tmp_path: Path) -> None:
    """Leaving by an exception closes telemetry too: the spans so far arrive."""
    config = Config().at_home(tmp_path / "home")
    bus = InProcessBus(FakeClock(), SequentialIds())
    async with Collector() as collector:
        with pytest.raises(ExceptionGroup):
            async with observed(bus, config, {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, given_model=True):
                bus.port(Role.USER, "t1").publish(UserRequest(text="x", project="/p", workspace="/w"))
                await told(bus)
                raise RuntimeError("the body failed")
    assert {span.name for span in collector.spans} == {"invoke_workflow artoo", "round"}


async def told(bus: InProcessBus) -> None:
    """Returns when watchers have been handed what was said."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_missing_packages_are_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Variables set, packages absent: the task runs, and the log says what to install."""
    monkeypatch.delitem(sys.modules, "artoo.telemetry.providers", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    result = await run_task(tmp_path, {"OTEL_TRACES_EXPORTER": "otlp"})
    assert result.directive is Directive.ACCEPT
    assert "pip install 'artoo[otel]'" in caplog.text


OFF = """
import asyncio, sys
from pathlib import Path
from artoo import Artoo, Config, RunOptions
from artoo.testing import ScriptedModel, with_body

async def main(place):
    answered = {"text": "there is an answer", "check": {"check": "output_matches", "regex": r"[A-Za-z0-9]"}}
    script = {
        "Plan": {"subtasks": [{"intent": "count the lines", "tool": "shell", "success_criteria": [answered]}]},
        "ExecutorStep": with_body({"tool": "shell", "is_final": True}, "wc -l < a.txt"),
    }
    project = place / "project"
    project.mkdir()
    (project / "a.txt").write_text("x")
    config = Config(workspace=place / "workspace").at_home(place / "home")
    with ScriptedModel(script) as model:
        async with Artoo(config, environ=ENVIRON, model=model) as artoo:
            result = await artoo.run("How many lines has a.txt?", options=RunOptions(project=project))
    print(result.directive.value)
    print(sorted(name for name in sys.modules if name.startswith(("opentelemetry", "artoo.telemetry"))))

asyncio.run(main(Path(sys.argv[1])))
"""


@pytest.mark.parametrize(
    ("environ", "loaded"),
    [
        ({}, []),
        (
            {"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "otlp"},
            ["artoo.telemetry", "artoo.telemetry.settings"],
        ),
    ],
)
def test_off_is_not_even_imported(tmp_path: Path, environ: dict[str, str], loaded: list[str]) -> None:
    """A whole task without an exporter, or with the SDK disabled, loads no module of OpenTelemetry."""
    program = textwrap.dedent(OFF).replace("ENVIRON", repr(environ))
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout.splitlines() == ["accept", str(loaded)], ran.stderr


@pytest.mark.parametrize(
    ("environ", "traces", "metrics"),
    [
        ({}, (), ()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, ("otlp",), ("otlp",)),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, ("console", "otlp"), ()),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, (), ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "TRUE"}, (), ()),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, (), ()),
        ({"OTEL_TRACES_EXPORTER": "otlp,console", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ("console",), ()),
    ],
)
def test_what_the_variables_mean(
    environ: dict[str, str], traces: tuple[str, ...], metrics: tuple[str, ...]
) -> None:
    """The standard variables decide signal by signal; what artoo cannot do is off, with a hint."""
    settings = telemetry_settings(environ)
    assert (settings.traces.names, settings.metrics.names) == (traces, metrics)
    assert bool(settings.hints) == ("zipkin" in environ.values() or "grpc" in environ.values())


def test_endpoints_follow_the_standard() -> None:
    """The common endpoint gets the signal's path, a signal's own is used as it stands."""
    common = telemetry_settings({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"})
    assert common.traces.endpoint == "http://c:4318/v1/traces"
    own = telemetry_settings({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c/m"})
    assert own.metrics.endpoint == "http://c/m"


@pytest.mark.parametrize(
    ("value", "on"),
    [("true", True), ("SPAN_ONLY", True), ("span_and_event", True), ("event_only", False), ("", False)],
)
def test_content_capture_is_a_standard_variable(value: str, on: bool) -> None:
    """Both of its known forms are read; artoo emits no events, so those alone capture nothing."""
    settings = telemetry_settings({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": value})
    assert settings.content is on


@pytest.mark.parametrize(
    ("base_url", "provider", "port"),
    [
        ("https://api.openai.com/v1", "openai", 443),
        ("https://mine.openai.azure.com/x", "azure.ai.openai", 443),
        ("https://api.deepseek.com/v1", "deepseek", 443),
        ("http://127.0.0.1:11434/v1", "openai_compatible", 11_434),
        ("https://notopenai.com/v1", "openai_compatible", 443),
        (None, "llama.cpp", 0),
    ],
)
def test_providers_have_their_well_known_names(base_url: str | None, provider: str, port: int) -> None:
    """The host decides, by its whole name; every other server is what it speaks like."""
    peer = peer_of(base_url, "m")
    assert (peer.provider, peer.port) == (provider, port)


def measured(reader: InMemoryMetricReader) -> dict[str, list[tuple[dict[str, object], float]]]:
    """Attributes and sum of every point, by measurement."""
    found: dict[str, list[tuple[dict[str, object], float]]] = {}
    data = reader.get_metrics_data()
    assert data is not None
    for metric in (m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics):
        for point in metric.data.data_points:
            assert isinstance(point, (HistogramDataPoint, NumberDataPoint))
            value = point.sum if isinstance(point, HistogramDataPoint) else point.value
            found.setdefault(metric.name, []).append((dict(point.attributes or {}), float(value)))
    return found


def test_measurements_of_a_task() -> None:
    """Tokens by type, durations with error types, tasks by outcome, and money, with few-valued attributes."""
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    clock = FakeClock()
    bus = InProcessBus(clock, SequentialIds())
    bus.attach(Measures(provider.get_meter("test"), PEERS).hear)
    bus.port(Role.USER, "t1").publish(UserRequest(text="x", project="/p", workspace="/w"))
    called = ModelCalled(
        role=Role.PLANNER,
        contract="Plan",
        tier="brain",
        model="gpt-x-0611",
        system="",
        user="",
        usage=Usage(prompt_tokens=100, completion_tokens=7),
        duration_ms=1_500,
    )
    bus.port(Role.PLANNER, "t1").publish(called)
    failed = ToolCall(tool="shell", identity=("shell:x",), status=CallStatus.ERROR, duration_ms=500)
    bus.port(Role.EXECUTOR, "t1").publish(ToolCalled(subtask_id="s", attempt=1, call=failed))
    clock.advance(12)
    result = FinalResult(
        task_id="t1",
        summary="",
        directive=Directive.ABANDON,
        stopped_by=StoppedBy.MONEY,
        cost=Cost(money=Money(amount=0.25, currency="EUR")),
    )
    bus.port(Role.SOLVER, "t1").publish(result)
    found = measured(reader)
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.response.model": "gpt-x-0611",
        "server.address": "api.openai.com",
        "server.port": 443,
    }
    assert found["gen_ai.client.operation.duration"] == [(model, 1.5)]
    tokens = {
        str(attributes["gen_ai.token.type"]): value for attributes, value in found["gen_ai.client.token.usage"]
    }
    assert tokens == {"input": 100, "output": 7}
    assert found["gen_ai.execute_tool.duration"] == [
        ({"gen_ai.tool.name": "shell", "gen_ai.tool.type": "function", "error.type": "error"}, 0.5)
    ]
    assert found["gen_ai.workflow.duration"] == [({"gen_ai.workflow.name": "artoo", "error.type": "money"}, 12)]
    how = {"artoo.directive": "abandon", "artoo.stopped_by": "money"}
    assert found["artoo.tasks"] == [(how, 1)]
    assert found["artoo.task.money"] == [({"artoo.currency": "EUR"}, 0.25)]
    provider.shutdown()


async def test_all_signals_together_have_the_time_of_one() -> None:
    """Two signals that hang are waited for at the same time, not one after the other."""
    never, began = threading.Event(), monotonic()

    def hang() -> None:
        never.wait()

    assert not await providers.Providers(None, None, (hang, hang)).close_within(0.2)
    assert monotonic() - began < 0.39
    never.set()


async def test_the_console_is_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output is what the command says, to programs too: `--json` stays alone there."""
    environ = {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "console"}
    opened = providers.open_providers(telemetry_settings(environ))
    assert opened.tracer is not None
    assert opened.meter is not None
    opened.tracer.start_span("a span").end()
    opened.meter.create_counter("a_counter").add(1)
    assert await opened.close_within(20.0)
    said = capsys.readouterr()
    assert said.out == ""
    assert "a span" in said.err
    assert "a_counter" in said.err
