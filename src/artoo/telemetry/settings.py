"""Read the `OTEL_*` variables that enable traces, metrics and content capture.

Telemetry is only enabled by a variable that names an exporter. Without such variables it costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Signal = Literal["traces", "metrics"]

DISABLED = "OTEL_SDK_DISABLED"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

_EXPORTERS = frozenset({"otlp", "console"})
_ON_SPANS = frozenset({"true", "span_only", "span_and_event"})


@dataclass(frozen=True, slots=True)
class Exporters:
    """The exporters of one signal: `otlp`, `console`, or both. If `endpoint` is None, the default of OpenTelemetry
    is used."""

    names: tuple[str, ...] = ()
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """The signals to send, and how.

    If `content` is true, prompts, answers and outputs are sent too. `hints` says which variables are ignored, and
    why."""

    traces: Exporters
    metrics: Exporters
    content: bool = False
    hints: tuple[str, ...] = ()

    @property
    def wanted(self) -> bool:
        """Return whether there is at least one exporter."""
        return bool(self.traces.names or self.metrics.names)


def telemetry_settings(environ: Mapping[str, str]) -> TelemetrySettings:
    """Read the variables, and return the settings. This function never raises: an unknown value disables its signal
    and adds a hint."""
    if _value(environ, DISABLED).lower() == "true":
        return TelemetrySettings(Exporters(), Exporters())
    hints: list[str] = []
    return TelemetrySettings(
        traces=_exporters(environ, "traces", hints),
        metrics=_exporters(environ, "metrics", hints),
        content=_value(environ, CONTENT).lower() in _ON_SPANS,
        hints=tuple(hints),
    )


def _exporters(environ: Mapping[str, str], signal: Signal, hints: list[str]) -> Exporters:
    upper = signal.upper()
    variable = f"OTEL_{upper}_EXPORTER"
    own, common = _value(environ, f"OTEL_EXPORTER_OTLP_{upper}_ENDPOINT"), _value(environ, ENDPOINT)
    named = _value(environ, variable)
    if not named:
        named = "otlp" if own or common else "none"
    names = tuple(dict.fromkeys(name.strip().lower() for name in named.split(",") if name.strip()))
    unknown = [name for name in names if name not in _EXPORTERS and name != "none"]
    if unknown:
        hints.append(f"{variable}={named}: artoo knows otlp, console and none, so no {signal} are sent")
        return Exporters()
    names = tuple(name for name in names if name != "none")
    protocol = _value(environ, f"OTEL_EXPORTER_OTLP_{upper}_PROTOCOL") or _value(environ, PROTOCOL)
    if "otlp" in names and protocol not in ("", "http/protobuf"):
        hints.append(
            f"{PROTOCOL}={protocol}: artoo speaks http/protobuf (port 4318), so no {signal} are sent by OTLP"
        )
        names = tuple(name for name in names if name != "otlp")
    return Exporters(names, own or (f"{common.rstrip('/')}/v1/{signal}" if common else None))


def _value(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, "").strip()
