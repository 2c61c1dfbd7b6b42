"""Measurements of what is on the stream."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime

from opentelemetry.metrics import Meter

from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import ToolCalled
from artoo.contracts.request import UserRequest
from artoo.contracts.solution import Directive, FinalResult
from artoo.telemetry import conventions as c
from artoo.telemetry.failures import error_type
from artoo.telemetry.peers import Peer, Peers

MOST_TASKS = 1_024
"""Tasks whose beginning is remembered; of those beyond, the duration is that of their result."""


class Measures:
    """Instruments of one meter, fed with envelopes. Attributes are few-valued: no ids, no texts."""

    def __init__(self, meter: Meter, peers: Peers) -> None:
        self._peers = peers
        self._began: OrderedDict[str, datetime] = OrderedDict()
        self._tokens = meter.create_histogram(
            c.TOKEN_USAGE,
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=c.TOKEN_BUCKETS,
        )
        self._calls = meter.create_histogram(
            c.OPERATION_DURATION,
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=c.CALL_BUCKETS,
        )
        self._tools = meter.create_histogram(
            c.TOOL_DURATION,
            unit="s",
            description="The duration of a single tool execution.",
            explicit_bucket_boundaries_advisory=c.CALL_BUCKETS,
        )
        self._workflows = meter.create_histogram(
            c.WORKFLOW_DURATION,
            unit="s",
            description="GenAI workflow duration.",
            explicit_bucket_boundaries_advisory=c.WORKFLOW_BUCKETS,
        )
        self._tasks = meter.create_counter(c.TASKS, unit="{task}", description="Tasks that ended, by how.")
        self._rounds = meter.create_histogram(
            c.TASK_ROUNDS,
            unit="{round}",
            description="Rounds that a task took.",
            explicit_bucket_boundaries_advisory=c.ROUND_BUCKETS,
        )
        self._loss = meter.create_histogram(
            c.TASK_LOSS,
            unit="1",
            description="The loss L with which a task ended.",
            explicit_bucket_boundaries_advisory=c.LOSS_BUCKETS,
        )
        self._money = meter.create_counter(c.TASK_MONEY, unit="1", description="What priced model calls cost.")

    def hear(self, envelope: Envelope) -> None:
        """Measures one message; most have nothing to measure."""
        match envelope.payload:
            case UserRequest():
                self._began[envelope.task_id] = envelope.at
                if len(self._began) > MOST_TASKS:
                    self._began.popitem(last=False)
            case ModelCalled() as call:
                self._called(call)
            case ToolCalled(call=call):
                failed = {} if not call.went_wrong else {c.ERROR_TYPE: call.status.value}
                self._tools.record(
                    call.duration_ms / 1_000, {c.TOOL_NAME: call.tool, c.TOOL_TYPE: "function", **failed}
                )
            case FinalResult() as result:
                self._ended(envelope, result)
            case _:
                return

    def _called(self, call: ModelCalled) -> None:
        common = self._peers.get(call.tier, Peer()).attributes()
        if call.model:
            common[c.RESPONSE_MODEL] = call.model
        failed = {c.ERROR_TYPE: error_type(call)} if call.error is not None else {}
        self._calls.record(call.duration_ms / 1_000, {**common, **failed})
        for kind, tokens in (("input", call.usage.prompt_tokens), ("output", call.usage.completion_tokens)):
            if tokens:
                self._tokens.record(tokens, {**common, c.TOKEN_TYPE: kind})

    def _ended(self, envelope: Envelope, result: FinalResult) -> None:
        how = {c.DIRECTIVE: result.directive.value}
        failed: dict[str, str] = {}
        if result.directive is Directive.ABANDON and result.stopped_by is not None:
            how[c.STOPPED_BY] = result.stopped_by.value
            failed = {c.ERROR_TYPE: result.stopped_by.value}
        began = self._began.pop(envelope.task_id, None)
        seconds = (envelope.at - began).total_seconds() if began is not None else result.cost.elapsed_ms / 1_000
        self._workflows.record(max(0.0, seconds), {c.WORKFLOW_NAME: "artoo", **failed})
        self._tasks.add(1, how)
        self._rounds.record(result.replans + 1, how)
        self._loss.record(result.loss.L, how)
        if result.cost.money is not None:
            self._money.add(result.cost.money.amount, {c.CURRENCY: result.cost.money.currency})
