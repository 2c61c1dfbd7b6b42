"""What an executor remembers of its subtask's calls: every call of every attempt, numbered from 1.

    [2] exit 1
    FAILED test_cart.py::test_total

is what the model reads of a call when it has ended, and in a line when its output was left out later:

    [2] shell pytest -q: exit 1, 1 lines; read again with recall(2)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.shortened import listed, shortened

_INPUT_NAMED = 120
"""Characters of a call's input that are enough to know it by."""


def outcome_of(call: ToolCall) -> tuple[object, ...]:
    """What two calls have in common that were made alike and ended alike."""
    return call.tool, call.input, call.status, call.exit_code, call.output, call.error_output


@dataclass(slots=True)
class Record:
    """The calls in order. Paths are shown from `project`."""

    project: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])

    def call(self, number: int) -> ToolCall | None:
        """The call of this number, if there is one."""
        return self.calls[number - 1] if 1 <= number <= len(self.calls) else None

    def text(self, number: int, call: ToolCall) -> str:
        """A call's end and what it printed, as the model reads it.

        Where a command printed something and failed, its exit code comes last: what it printed may be what was
        wanted.
        """
        error = call.error_output.strip()
        printed = [part for part in (call.output.rstrip("\n"), f"stderr: {error}" if error else "") if part]
        ending = self._ending(call)
        parts = [*printed, ending] if call.exit_code and printed else [ending, *printed]
        return "\n".join((f"[{number}] {parts[0]}", *parts[1:]))

    def line(self, number: int, call: ToolCall) -> str:
        """A call in one line, where what it printed was left out."""
        lines = len(call.output.splitlines()) + len(call.error_output.splitlines())
        given = shortened(" ".join(call.input.split()), _INPUT_NAMED)
        ended = self._ending(call)
        return f"[{number}] {call.tool} {given}: {ended}, {lines} lines; read again with recall({number})"

    def came_before(self, call: ToolCall) -> bool:
        """True if the same call ended in the same way before, in whichever attempt."""
        return [outcome_of(each) for each in self.calls].count(outcome_of(call)) > 1

    def answer_of(self, call: ToolCall) -> str:
        """What a call gives as an answer: its output, or the names of what it made."""
        if call.status is not CallStatus.OK:
            return ""
        return call.output.strip() or listed(self._near(call.changes))

    def _near(self, paths: Sequence[str]) -> list[str]:
        prefix = f"{self.project.rstrip('/')}/"
        return [path.removeprefix(prefix) if self.project else path for path in paths]

    def _ending(self, call: ToolCall) -> str:
        """How the call ended. A program that ended with another code than 0 may well have done its work."""
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
