"""The tool `process`, which waits for, reads, writes to or stops a command that continued."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from artoo.contracts.execution import OUTPUT_KEPT, CallEffects, CallStatus
from artoo.ports.arguments import as_text
from artoo.ports.tools import INTEGER, NUMBER, Parameter, ToolSpec
from artoo.ports.workspace import Ended
from artoo.tools.builtin.shell import WALL_SECONDS
from artoo.tools.core.call_changes import CallChanges, Changed
from artoo.tools.core.command_runner import COMMAND_SECONDS
from artoo.tools.core.live_output import Printing, printing_of
from artoo.tools.core.processes import Processes, Tracked, ended_or_asking
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Arguments, CountsAsItself, Outcome, argument, number
from artoo.tools.core.truncate import head_tail, looks_binary
from artoo.tools.resume.in_flight import Announcing, current_act, current_subtask, goes_out

_ACTIONS = ("wait", "read", "write", "stop", "list")
_MARK_ROOM = 120
"""Number of characters reserved for the line that says how much was omitted."""
_AFTER_INPUT_SECONDS = 1.0
"""Number of seconds that a call waits for a reaction after it has sent input."""

_COMMAND_SHOWN = 200
"""Number of characters of the process's command that a result repeats."""

_SPEC = ToolSpec(
    name="process",
    description="wait for, read, write to or stop a command that goes on; list all",
    parameters=(
        Parameter("id", "such as p1", False),
        Parameter("action", "default wait", False, schema={"type": "string", "enum": list(_ACTIONS)}),
        Parameter("input", "for write: the text, with its line end", False),
        Parameter("timeout", f"for wait: seconds, default {COMMAND_SECONDS:.0f}", False, schema=NUMBER),
        Parameter("offset", "for read: first byte", False, schema=INTEGER),
    ),
    priority=62,  # described after the tools that start programs
    reads=False,
)


class Teller(Protocol):
    """Reports the end of a process's command like the tool that started the command."""

    def told(self, tracked: Tracked, ended: Ended | None, changed: Changed) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class ProcessTool(Announcing, CountsAsItself):
    """Controls the processes of one task. The record of a call lists the changes that a process made during this
    call.

    `kept`: maximum number of characters of output that one call shows.
    """

    processes: Processes
    changes: CallChanges
    teller: Teller
    printing: Printing | None = None
    kept: int = OUTPUT_KEPT
    spec: ToolSpec = _SPEC
    wall_seconds: float = WALL_SECONDS

    def target(self, arguments: Arguments) -> str:
        return f"{argument(arguments, 'action', 'wait')} {argument(arguments, 'id')}".strip()

    async def run(self, arguments: Arguments) -> Outcome:
        """Run an action on a process. Raises ToolError for an unknown id, and SandboxError if the process accepts
        no input."""
        action = argument(arguments, "action") or ("wait" if argument(arguments, "id") else "list")
        if action == "list":
            await goes_out(CallEffects.NONE)
            return self._listed()
        tracked = self.processes.find(argument(arguments, "id"))
        if action == "read":
            await goes_out(CallEffects.NONE)
            return await self._read(tracked, arguments)
        await goes_out(CallEffects.OUTSIDE if tracked.command.network.hosts else CallEffects.STAGED)
        ran_before = tracked.runs
        call = await self.changes.begin(current_subtask())
        try:
            ended = await self._act(tracked, action, arguments)
            changed = await self.changes.end(call)
        except BaseException:
            self.changes.abandon(call)
            raise
        return await self._told(tracked, ended, changed, action if ran_before else "wait")

    async def _act(self, tracked: Tracked, action: str, arguments: Arguments) -> Ended | None:
        """Wait for the process, stop it, or send it input. Return its end, or None if it is still running."""
        process = tracked.process
        if action == "stop":
            return await process.stop()
        if action == "write":
            await process.write(as_text(arguments.get("input", "")).encode())
            return await ended_or_asking(process, self.processes.seconds(_AFTER_INPUT_SECONDS), asks=True)
        listener = self.processes.listener(tracked)
        with printing_of(self.printing, current_act()) as listener.heard:
            seconds = self.processes.seconds(number(arguments, "timeout", COMMAND_SECONDS))
            return await ended_or_asking(process, seconds, asks=tracked.command.pty)

    async def _told(self, tracked: Tracked, ended: Ended | None, changed: Changed, action: str) -> Outcome:
        outcome = self.teller.told(tracked, ended, changed)
        text, cut = await in_thread(self._new_output, tracked)
        outcome = replace(
            outcome,
            ran=head_tail(tracked.command.text, _COMMAND_SHOWN),
            output=text,
            error_output="",
            truncated=cut,
            process=tracked.id if ended is None else "",
        )
        if action == "stop":
            return replace(outcome, status=CallStatus.OK, reason=f"process {tracked.id} was stopped")
        if action == "write" and ended is None:
            return replace(outcome, status=CallStatus.OK)
        return outcome

    def _new_output(self, tracked: Tracked) -> tuple[str, bool]:
        """Return the output since the last one that was shown. If it is long, only its beginning and end are
        returned."""
        stdout, stderr = tracked.process.printed
        end = stdout.total_bytes + stderr.total_bytes
        new, half = end - tracked.shown, (self.kept - _MARK_ROOM) // 2
        if new <= self.kept:
            data, _ = tracked.process.read(tracked.shown, self.kept)
            text, cut = _text(data), False
        else:
            head, after = tracked.process.read(tracked.shown, half)
            tail, _ = tracked.process.read(end - half, half)
            left = f"[... {end - half - after} bytes left out here; read them with offset {after} ...]"
            text, cut = f"{_text(head)}\n{left}\n{_text(tail)}", True
        tracked.shown = end
        return text, cut

    async def _read(self, tracked: Tracked, arguments: Arguments) -> Outcome:
        offset = round(number(arguments, "offset", tracked.shown))
        data, after = await in_thread(tracked.process.read, offset, self.kept)
        stdout, stderr = tracked.process.printed
        end = stdout.total_bytes + stderr.total_bytes
        tracked.shown = max(tracked.shown, after)
        more = f"; {end - after} more bytes: read with offset {after}" if after < end else ""
        state = "it still runs" if tracked.runs else "it has ended"
        return Outcome(
            output=_text(data),
            ran=f"output of `{head_tail(tracked.command.text, _COMMAND_SHOWN)}` from byte {offset}",
            reason=f"{state}{more}",
            process=tracked.id if tracked.runs else "",
        )

    def _listed(self) -> Outcome:
        lines = [_line(one) for one in self.processes.all]
        return Outcome(output="\n".join(lines) or "no command was left running", result_count=len(lines))


def _line(tracked: Tracked) -> str:
    process, ended = tracked.process, tracked.process.ended
    if ended is not None:
        state = "ended" if ended.exit_code is None else f"ended with exit code {ended.exit_code}"
    else:
        state = "waits for input" if process.waits_for_input else "runs"
    return f"{process.id}: {state}: {in_a_line(tracked.command.text)}"


def in_a_line(text: str, most: int = 200) -> str:
    """Shorten a command to one line of bounded length."""
    return head_tail("; ".join(filter(None, (line.strip() for line in text.splitlines()))), most)


def _text(data: bytes) -> str:
    return f"({len(data)} bytes that are no text)" if looks_binary(data) else data.decode("utf-8", "replace")
