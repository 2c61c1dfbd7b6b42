"""Make a subtask's tool calls, record them, and print them for the model, as one line if dropped.

The numbers begin at 1 and continue over all attempts.

    [2] exit 1
    FAILED test_cart.py::test_total

This is the text that the model reads when a call has ended. If the output is left out of the conversation later,
one line replaces it:

    [2] shell pytest -q: exit 1, 1 lines; read again with recall(2)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from artoo.contracts.conversation import ToolRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import CallStatus, ToolCall, ToolCalled, ToolStarted
from artoo.contracts.text import listed, shortened
from artoo.loops.before_work import BeforeWork
from artoo.ports.bus import Port
from artoo.ports.tools import Departure, Ticket, Toolbox

# Number of characters from a call's input by which a reader can recognise the call.
_INPUT_NAMED = 120


def outcome_of(call: ToolCall) -> tuple[object, ...]:
    """Return the values that must be equal for two calls to count as the same call with the same result."""
    return call.tool, call.input, call.status, call.exit_code, call.output, call.error_output


@dataclass(slots=True)
class CallRecord:
    """The calls in order. Paths are shown relative to `project`."""

    project: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])

    def call(self, number: int) -> ToolCall | None:
        """Return the call with this number, or None."""
        return self.calls[number - 1] if 1 <= number <= len(self.calls) else None

    def text(self, number: int, call: ToolCall) -> str:
        """Write the output of a call for the model, and how the call ended.

        If a command printed something and failed, its exit code comes last, because the output may be the wanted
        result.
        """
        error = call.error_output.strip()
        printed = [part for part in (call.output.rstrip("\n"), f"stderr: {error}" if error else "") if part]
        ending = self._ending(call)
        parts = [*printed, ending] if call.exit_code and printed else [ending, *printed]
        return "\n".join((f"[{number}] {parts[0]}", *parts[1:]))

    def line(self, number: int, call: ToolCall) -> str:
        """Describe a call in one line, which replaces its output in the conversation."""
        lines = len(call.output.splitlines()) + len(call.error_output.splitlines())
        given = shortened(" ".join(call.input.split()), _INPUT_NAMED)
        ended = self._ending(call)
        return f"[{number}] {call.tool} {given}: {ended}, {lines} lines; read again with recall({number})"

    def came_before(self, call: ToolCall) -> bool:
        """Return whether an earlier call, in any attempt, was the same and had the same result."""
        return [outcome_of(each) for each in self.calls].count(outcome_of(call)) > 1

    def answer_of(self, call: ToolCall) -> str:
        """Return a call's output as an answer, or the names of the files that it changed."""
        if call.status is not CallStatus.OK:
            return ""
        return call.output.strip() or listed(self._near(call.changes))

    def _near(self, paths: Sequence[str]) -> list[str]:
        prefix = f"{self.project.rstrip('/')}/"
        return [path.removeprefix(prefix) if self.project else path for path in paths]

    def _ending(self, call: ToolCall) -> str:
        """Describe how the call ended. The text does not call a nonzero exit code a failure, because the program
        may still have done its work."""
        if call.exit_code is not None and call.status in (CallStatus.OK, CallStatus.ERROR):
            ended_well = call.exit_code == 0 and call.status is CallStatus.OK
            parts = ["ok" if ended_well else f"exit {call.exit_code}"]
        else:
            parts = [call.status.value]
        if call.ran is not None:
            parts.append(f"ran: {call.ran}")
        if call.reason and call.reason not in call.error_output:
            parts.append(call.reason)
        if call.changes:
            parts.append(f"touched {listed(self._near(call.changes))}")
        if call.status is CallStatus.OK and not (call.output.strip() or call.error_output.strip() or call.changes):
            parts.append("printed nothing")
        return "; ".join(parts)


# At most this many calls run at the same time, because each may hold a thread or a connection.
_MOST_TOGETHER = 16


@dataclass(slots=True)
class Calls:
    """Makes the calls of one subtask, numbers them over all its attempts, and publishes each."""

    port: Port
    toolbox: Toolbox
    record: CallRecord
    subtask_id: str
    before: BeforeWork

    async def make(self, requests: Iterable[ToolRequest], attempt: int, cause: Envelope) -> dict[str, int]:
        """Make these calls in order and return their numbers by the requests' ids."""
        numbers: dict[str, int] = {}
        for batch in self._batches(requests):
            first = len(self.record.calls) + 1
            await self._together(batch, first, attempt, cause)
            numbers |= {request.id: number for number, request in enumerate(batch, first)}
        return numbers

    def _batches(self, requests: Iterable[ToolRequest]) -> Iterator[Sequence[ToolRequest]]:
        """Yield groups of calls that may run together. Adjacent calls form a group if all of them only read. A call
        that writes forms a group of its own."""
        reading = {spec.name for spec in self.toolbox.specs if not spec.writes}
        batch: list[ToolRequest] = []
        for request in requests:
            alone = request.name not in reading
            if batch and (alone or len(batch) == _MOST_TOGETHER):
                yield batch
                batch = []
            if alone:
                yield [request]
            else:
                batch.append(request)
        if batch:
            yield batch

    async def _together(self, batch: Sequence[ToolRequest], first: int, attempt: int, cause: Envelope) -> None:
        ended: dict[int, ToolCall] = {}
        looking = {spec.name for spec in self.toolbox.specs if spec.only_reads}

        async def make(number: int, request: ToolRequest) -> None:
            ticket = self._ticket(number, request.name, attempt, cause)
            if request.name not in looking:
                await self.before.ended()
            ended[number] = await self.toolbox.call(request.name, request.arguments, ticket)

        if len(batch) == 1:  # `gather` and not a task group, which would wrap an exception of a replay
            await make(first, batch[0])
        else:
            async with asyncio.TaskGroup() as group:
                for number, request in enumerate(batch, first):
                    group.create_task(make(number, request))
        for number in sorted(ended):  # recorded in the order of the requests, regardless of which call ended first
            self._keep(ended[number], number, attempt, cause)

    def _keep(self, call: ToolCall, number: int, attempt: int, cause: Envelope) -> None:
        self.record.calls.append(call)
        told = ToolCalled(subtask_id=self.subtask_id, attempt=attempt, call=call, act=self._act(number))
        self.port.publish(told, cause=cause)

    def _act(self, number: int) -> str:
        """Return the name of the call in the log. A replay of the task gives the call the same name."""
        return f"{self.subtask_id}/{number}"

    def _ticket(self, number: int, tool: str, attempt: int, cause: Envelope) -> Ticket:
        act = self._act(number)

        def announce(departure: Departure) -> None:
            started = ToolStarted(
                subtask_id=self.subtask_id,
                attempt=attempt,
                act=act,
                tool=tool,
                input=departure.input,
                effects=departure.effects,
                digest=departure.digest,
            )
            self.port.publish(started, cause=cause)

        return Ticket(act, announce)
