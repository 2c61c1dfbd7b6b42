"""The tool calls of one turn: those that only read run together, those that write one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from artoo.contracts.conversation import ToolRequest
from artoo.contracts.envelope import Envelope
from artoo.contracts.execution import ToolCall, ToolCalled, ToolStarted
from artoo.loops.fast.record import Record
from artoo.ports.bus import Port
from artoo.ports.tools import Departure, Ticket, Toolbox

_MOST_TOGETHER = 16
"""Calls that run at the same time: each may hold a thread or a connection."""


@dataclass(slots=True)
class Calls:
    """Makes the calls of one subtask, numbers them over all its attempts, and puts each on the stream."""

    port: Port
    toolbox: Toolbox
    record: Record
    subtask_id: str
    _cut: tuple[Sequence[ToolRequest], dict[int, ToolCall]] = field(default=((), {}), init=False)
    _known_cut: int = field(default=0, init=False)

    async def make(self, requests: Iterable[ToolRequest], attempt: int, cause: Envelope) -> dict[str, int]:
        """Make these calls in order and return their numbers by the requests' ids."""
        numbers: dict[str, int] = {}
        for batch in self._batches(requests):
            first = len(self.record.calls) + 1
            await self._together(batch, first, attempt, cause)
            numbers |= {request.id: number for number, request in enumerate(batch, first)}
        return numbers

    def keep_interrupted(self, attempt: int, cause: Envelope) -> None:
        """Record the calls that the time limit cut off: they could not return, and happened all the same."""
        batch, ended = self._cut
        cut = list(self.toolbox.interrupted[self._known_cut :])
        self._known_cut += len(cut)
        for number, request in enumerate(batch, len(self.record.calls) + 1):
            call = ended.get(number) or next((one for one in cut if one.tool == request.name), None)
            if call is None:
                continue
            if call in cut:
                cut.remove(call)
            self._keep(call, number, attempt, cause)
        self._cut = (), {}

    def _batches(self, requests: Iterable[ToolRequest]) -> Iterator[Sequence[ToolRequest]]:
        """Calls that may run together: neighbours that only read. A call that writes is alone."""
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

        async def make(number: int, request: ToolRequest) -> None:
            ticket = self._ticket(number, request.name, attempt, cause)
            ended[number] = await self.toolbox.call(request.name, request.arguments, ticket)

        try:
            if len(batch) == 1:
                await make(first, batch[0])
            else:
                async with asyncio.TaskGroup() as group:
                    for number, request in enumerate(batch, first):
                        group.create_task(make(number, request))
        except asyncio.CancelledError:
            self._cut = batch, ended
            raise
        for number in sorted(ended):  # in the order in which they were asked for, whichever ended first
            self._keep(ended[number], number, attempt, cause)

    def _keep(self, call: ToolCall, number: int, attempt: int, cause: Envelope) -> None:
        self.record.calls.append(call)
        told = ToolCalled(subtask_id=self.subtask_id, attempt=attempt, call=call, act=self._act(number))
        self.port.publish(told, cause=cause)

    def _act(self, number: int) -> str:
        """The call's name in the log, the same when the task is run again from its log."""
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
