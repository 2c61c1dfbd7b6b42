"""The metrics of model calls, tool calls and tasks, as histograms with their units."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime

from opentelemetry.metrics import Histogram, Meter

from artoo.contracts.envelope import Envelope
from artoo.contracts.events import ModelCalled
from artoo.contracts.execution import ToolCalled
from artoo.contracts.request import UserRequest
from artoo.contracts.solution import Directive, FinalResult
from artoo.telemetry import conventions as c
from artoo.telemetry.leaves import error_type
from artoo.telemetry.peers import Peer, Peers

# Maximum number of tasks whose start is stored. The duration of an older task is taken from its result.
MOST_TASKS = 1_024


class Measures:
    """The instruments of one meter. Their attributes contain no ids and no texts, because an attribute must have
    few different values."""

    def __init__(self, meter: Meter, peers: Peers) -> None:
        def histogram(name: str, unit: str, description: str, bounds: Sequence[float]) -> Histogram:
            return meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=bounds)

        self._peers = peers
        self._began: OrderedDict[str, datetime] = OrderedDict()
        self._tokens = histogram(c.TOKEN_USAGE, "{token}", "Input and output tokens used.", c.TOKEN_BUCKETS)
        self._calls = histogram(c.OPERATION_DURATION, "s", "Duration of a model call.", c.CALL_BUCKETS)
        self._tools = histogram(c.TOOL_DURATION, "s", "Duration of a tool call.", c.CALL_BUCKETS)
        self._workflows = histogram(c.WORKFLOW_DURATION, "s", "Duration of a task.", c.WORKFLOW_BUCKETS)
        self._tasks = meter.create_counter(c.TASKS, "{task}", "Ended tasks.")
        self._money = meter.create_counter(c.TASK_MONEY, "1", "Cost of priced model calls.")

    def hear(self, envelope: Envelope) -> None:
        """Update the measurements according to one message. Most kinds of messages are ignored."""
        match envelope.payload:
            case UserRequest():
                self._began[envelope.task_id] = envelope.at
                if len(self._began) > MOST_TASKS:
                    self._began.popitem(last=False)
            case ModelCalled() as call:
                self._measure_call(call)
            case ToolCalled(call=call):
                failed = {} if not call.went_wrong else {c.ERROR_TYPE: call.status.value}
                self._tools.record(
                    call.duration_ms / 1_000, {c.TOOL_NAME: call.tool, c.TOOL_TYPE: "function", **failed}
                )
            case FinalResult() as result:
                self._measure_end(envelope, result)
            case _:
                return

    def _measure_call(self, call: ModelCalled) -> None:
        common = self._peers.get(call.tier, Peer()).attributes()
        if call.model:
            common[c.RESPONSE_MODEL] = call.model
        failed = {c.ERROR_TYPE: error_type(call)} if call.error is not None else {}
        self._calls.record(call.duration_ms / 1_000, {**common, **failed})
        for kind, tokens in (("input", call.usage.prompt_tokens), ("output", call.usage.completion_tokens)):
            if tokens:
                self._tokens.record(tokens, {**common, c.TOKEN_TYPE: kind})

    def _measure_end(self, envelope: Envelope, result: FinalResult) -> None:
        how = {c.DIRECTIVE: result.directive.value}
        failed: dict[str, str] = {}
        if result.directive is Directive.ABANDON and result.stopped_by is not None:
            how[c.STOPPED_BY] = result.stopped_by.value
            failed = {c.ERROR_TYPE: result.stopped_by.value}
        began = self._began.pop(envelope.task_id, None)
        seconds = (envelope.at - began).total_seconds() if began is not None else result.cost.elapsed_ms / 1_000
        self._workflows.record(max(0.0, seconds), {c.WORKFLOW_NAME: "artoo", **failed})
        self._tasks.add(1, how)
        if result.cost.money is not None:
            self._money.add(result.cost.money.amount, {c.CURRENCY: result.cost.money.currency})
