"""Attributes of the spans of model calls, tool calls and memory, and events of verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson
from opentelemetry.trace import SpanKind

from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import CorrectionSignal, CriterionJudged, ToolCalled
from artoo.contracts.memory import MemoryRead, MemoryWritten
from artoo.contracts.roles import Role
from artoo.contracts.text import well_formed
from artoo.telemetry import conventions as c
from artoo.telemetry.peers import Peer, Peers

Attributes = dict[str, str | bool | int | float]

EXECUTOR = Role.EXECUTOR.value
# The name of the memory store. An artoo home has only one.
STORE = "shared"
# The `error.type` of an error for which the conventions have no name.
OTHER = "_OTHER"
# Maximum number of characters of one text in a span. The task log has the whole text.
LONGEST = 64 * 1024


@dataclass(frozen=True, slots=True)
class Leaf:
    """One operation that has ended. `error` is the type of the error, or None after a success. `tokens` are added
    up in the span of the task."""

    name: str
    attributes: Attributes
    duration_ms: int = 0
    error: str | None = None
    description: str | None = None
    kind: SpanKind = SpanKind.INTERNAL
    tokens: dict[str, int] = field(default_factory=dict[str, int])


def error_type(call: ModelCalled) -> str:
    """Return the type of the error in the record: the HTTP status of a refusal, the name of a spent budget, or the
    kind of failure."""
    failure = call.failure
    if failure is None:
        return OTHER
    if failure.budget:
        return f"budget_{failure.budget}"
    return str(failure.status) if failure.status >= 400 else failure.nature


def shortened(text: str) -> str:
    """Return a text, cut to the length that a span may have."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def message(role: str, text: str, **more: str) -> str:
    """Return a list with one message in the JSON of the conventions."""
    return _json([{"role": role, "parts": [_part(text)], **more}])


def answer(text: str) -> str:
    """Return a list with one answer of a model in the JSON of the conventions."""
    return message("assistant", text, finish_reason="stop")


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "content": well_formed(shortened(text))}


def _json(value: object) -> str:
    return orjson.dumps(value).decode()


def leaf_of(envelope: Envelope, peers: Peers, *, content: bool) -> Leaf | None:
    """Return the operation that a message records. Return None if it records no operation."""
    match envelope.payload:
        case ModelCalled() as call:
            return _model_call(call, peers.get(call.tier, Peer()), content=content)
        case ToolCalled() as called:
            return _tool_call(called, envelope.id, content=content)
        case MemoryRead() as read:
            return _memory_read(read, content=content)
        case MemoryWritten() as written:
            attributes = _memory(c.CREATE_MEMORY, 1) | {c.MEMORY_RECORD: written.megram_id}
            return Leaf(c.CREATE_MEMORY, attributes)
        case _:
            return None


def event_of(envelope: Envelope, *, content: bool) -> tuple[str, Attributes]:
    """Return a verdict or a correction as a span event. In the conventions, a verdict is an evaluation result."""
    match envelope.payload:
        case CriterionJudged() as judged:
            verdict = judged.verdict
            attributes: Attributes = {
                c.EVALUATION_NAME: verdict.decided_by.value,
                c.EVALUATION_LABEL: verdict.verdict,
                c.ATTEMPT: judged.attempt,
            }
            if verdict.failure_class is not None:
                attributes[c.ERROR_TYPE] = verdict.failure_class.value
            if content:
                said = f"{verdict.criterion}: {verdict.evidence}"
                attributes[c.EVALUATION_EXPLANATION] = shortened(said)
            return c.EVALUATION, attributes
        case CorrectionSignal() as correction:
            return c.CORRECTION, {c.ATTEMPT: correction.attempt, c.ERROR_TYPE: correction.failure_class.value}
        case other:
            return type(other).__name__, {}


def _model_call(call: ModelCalled, peer: Peer, *, content: bool) -> Leaf:
    usage = call.usage
    tokens = {
        c.INPUT_TOKENS: usage.prompt_tokens,
        c.OUTPUT_TOKENS: usage.completion_tokens,
        c.CACHED_TOKENS: usage.cached_tokens,
    }
    attributes: Attributes = {
        **peer.attributes(),
        **tokens,
        c.OUTPUT_TYPE: "json",
        c.AGENT_NAME: call.role.value,
        c.ROLE: call.role.value,
        c.CONTRACT: call.contract,
        c.TIER: call.tier,
        c.REQUESTS: call.requests,
        c.REPAIRED: call.repaired,
    }
    attributes |= {c.RESPONSE_MODEL: call.model} if call.model else {}
    attributes |= {c.WIRE: call.wire} if call.wire else {}
    attributes |= {c.MONEY: call.money} if call.money is not None else {}
    if content:
        attributes[c.SYSTEM_INSTRUCTIONS] = _json([_part(call.system)])
        attributes[c.INPUT_MESSAGES] = message("user", call.asked)
        attributes[c.OUTPUT_MESSAGES] = answer(call.answer)
    return Leaf(
        f"{c.CHAT} {peer.model or call.model}".strip(),
        attributes,
        call.duration_ms,
        error_type(call) if call.error is not None else None,
        shortened(call.error) if content and call.error is not None else None,
        SpanKind.INTERNAL if peer.local else SpanKind.CLIENT,
        tokens,
    )


def _tool_call(called: ToolCalled, call_id: str, *, content: bool) -> Leaf:
    call = called.call
    attributes: Attributes = {
        c.OPERATION: c.EXECUTE_TOOL,
        c.TOOL_NAME: call.tool,
        c.TOOL_TYPE: "function",
        c.TOOL_CALL_ID: call_id,
        c.AGENT_NAME: EXECUTOR,
        c.ATTEMPT: called.attempt,
        c.STATUS: call.status.value,
    }
    if content:
        attributes[c.TOOL_ARGUMENTS] = shortened(call.input)
        attributes[c.TOOL_RESULT] = shortened(call.output or call.error_output)
    failed = call.went_wrong
    return Leaf(
        f"{c.EXECUTE_TOOL} {call.tool}",
        attributes,
        call.duration_ms,
        call.status.value if failed else None,
        shortened(call.reason) if failed and content and call.reason else None,
    )


def _memory_read(read: MemoryRead, *, content: bool) -> Leaf:
    attributes = _memory(c.SEARCH_MEMORY, read.sops + len(read.potentials))
    if content:
        attributes[c.MEMORY_QUERY] = f"{read.space} {read.entity}"
    return Leaf(c.SEARCH_MEMORY, attributes, error=OTHER if read.error is not None else None)


def _memory(operation: str, records: int) -> Attributes:
    return {c.OPERATION: operation, c.MEMORY_STORE: STORE, c.MEMORY_COUNT: records}
