"""The registry and toolbox of tools, which validates, refuses, runs and records every call.

Every call produces a record, even if it was refused, failed or was interrupted.

Registry ──► toolbox(subtask, must_not) ──► call ──► refused │ ok │ error │ running │ timeout │ interrupted
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from artoo.contracts.errors import ArtooError, ConfigurationError
from artoo.contracts.execution import OUTPUT_KEPT, CallEffects, CallStatus, ToolCall
from artoo.contracts.plan import Caution, MustNot
from artoo.contracts.text import well_formed
from artoo.ports.arguments import as_text, read_arguments
from artoo.ports.clock import Clock
from artoo.ports.tools import Ticket, ToolSpec, own_names
from artoo.ports.waiting import under_limit
from artoo.tools.approval.gate import Cautions, Gate
from artoo.tools.core.middleware import Middleware, ToolUse, around, refused
from artoo.tools.core.tool import Arguments, Outcome, Tool
from artoo.tools.core.truncate import head_tail, without_terminal_codes
from artoo.tools.resume.in_flight import (
    Announcing,
    Durable,
    UnderWay,
    digest_of_call,
    goes_out,
    nothing_to_keep,
    under_way,
)
from artoo.tools.resume.resume_calls import Resumed

_REASON_KEPT = OUTPUT_KEPT // 2

Observer = Callable[[ToolCall], None]
"""Receives every call that was made, when its record is complete. It must be quick and never raise."""


def _unseen(call: ToolCall) -> None:
    """Ignore a call (the default observer)."""


class Registry:
    """The tools of one task. Implements `ports.tools.Tools`."""

    def __init__(
        self,
        tools: Iterable[Tool],
        clock: Clock,
        observe: Observer = _unseen,
        gate: Gate | None = None,
        durable: Durable = nothing_to_keep,
        resumed: Resumed | None = None,
        kept: int = OUTPUT_KEPT,
    ) -> None:
        """Create the registry of the tools that work on this platform.

        `observe` receives every record. `gate` asks the user about calls with a caution; if it is None, no one can
        be asked. `durable` is awaited before a call that may have effects. `resumed` examines the calls of a task
        that was resumed after a crash. `kept`: number of characters of output that a record keeps.

        Raises ConfigurationError if two tools have the same name.
        """
        self.tools: dict[str, Tool] = {}
        self.clock = clock
        self.observe = observe
        self.durable = durable
        self.resumed = resumed
        self.kept = kept
        self.forbidden = frozenset[str]()
        self.middleware: tuple[Middleware, ...] = ()
        self._specs: tuple[ToolSpec, ...] = ()
        self._gate = gate if gate is not None else Gate()
        self.add(tools)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools that work on this platform and are not forbidden, ordered by priority."""
        return self._specs

    def add(self, tools: Iterable[Tool], forbidden: Iterable[str] = ()) -> None:
        """Add tools, and forbid tool identities (such as `shell` or `shell:curl`), before the first toolbox is
        made.

        Raises ConfigurationError if two tools have the same name.
        """
        ordered = sorted((*self.tools.values(), *tools), key=lambda tool: tool.spec.priority)
        names = [tool.spec.name for tool in ordered]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(f"two tools have the same name: {', '.join(twice)}; rename one of each")
        self.tools = dict(zip(names, ordered, strict=True))
        self._specs = tuple(tool.spec for tool in ordered)
        self.forbidden |= {self.named(name) for name in forbidden}
        self._specs = tuple(spec for spec in self._specs if spec.name not in self.forbidden)

    def named(self, name: str) -> str:
        """Return the name of the tool with this name or alias; an unknown name is returned unchanged."""
        if name in self.tools:
            return name
        return own_names(tool.spec.named for tool in self.tools.values()).get(name, name)

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> SubTaskToolbox:
        """Return the tools of one subtask under its prohibitions and cautions."""
        blocked = frozenset(map(self.named, must_not.tools))
        targets = tuple((self.named(identity), target) for identity, target in must_not.targets)
        specs = tuple(spec for spec in self._specs if spec.name not in blocked)
        return SubTaskToolbox(self, specs, blocked, targets, Cautions(cautions, self._gate), subtask_id)

    def identities(self, name: str, arguments: Arguments) -> tuple[str, ...]:
        """Return the identities that a call would have. Tools are blocked, and remembered in memory, by these
        identities."""
        tool = self.tools.get(self.named(name))
        if tool is None:
            return (well_formed(name),)
        return _identities(tool, read_arguments(tool.spec, arguments)[0])


@dataclass(slots=True)
class SubTaskToolbox:
    """The tools of one subtask. Blocked tools are absent from it, and calls with blocked programs or targets are
    refused.

    Implements `ports.tools.Toolbox`. `specs` are the tools that are not blocked, ordered by priority. A target is
    blocked because it failed in the workspace as it was. After a change of the workspace the target may be tried
    again, for example tests after a correction.
    """

    registry: Registry
    specs: tuple[ToolSpec, ...]
    blocked: frozenset[str]
    targets: tuple[tuple[str, str], ...]
    cautions: Cautions
    subtask_id: str = ""
    _changed: bool = False

    async def call(self, name: str, arguments: Arguments, ticket: Ticket | None = None) -> ToolCall:
        """Run one tool and return a record of the call, whatever happens in it. Raises only CancelledError."""
        started = self.registry.clock.monotonic()
        name = self.registry.named(name)
        tool = self.registry.tools.get(name)
        if tool is None:
            reason = f"there is no tool {name!r}; the tools are: {self._offered}"
            return self._refused_unknown(name, arguments, reason)
        arguments, problem = read_arguments(tool.spec, arguments)
        if refusal := self._blocked_tool(tool) or problem or self._blocked(tool, arguments):
            outcome = Outcome(status=CallStatus.REFUSED, reason=refusal)
            return self._record(tool, arguments, outcome, started)
        call = None if ticket is None else self._under_way(ticket, tool, arguments)
        with under_way(call):
            outcome = await self._instead(tool, arguments, call) or await self._made(tool, arguments)
        record = self._record(tool, arguments, outcome, started)
        self._changed = self._changed or record.changed_something
        self.registry.observe(record)
        return record

    async def _made(self, tool: Tool, arguments: Arguments) -> Outcome:
        """Run a tool inside the task's middleware, which may change the arguments. Exceptions become outcomes."""
        if not self.registry.middleware:
            return await _run(tool, arguments)

        async def run(use: ToolUse) -> Outcome:
            read, problem = read_arguments(tool.spec, use.arguments)
            return refused(problem) if problem else await _run(tool, read)

        whole = around(self.registry.middleware, run)
        try:
            return await whole(ToolUse(tool.spec.name, arguments, self.subtask_id))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001  # middleware is foreign code, as a tool is
            return Outcome(status=CallStatus.ERROR, reason=f"middleware: {type(error).__name__}: {error}")

    async def _instead(self, tool: Tool, arguments: Arguments, call: UnderWay | None) -> Outcome | None:
        """Return the outcome of a call that is not made because a crash interrupted it or because of a caution.
        Return None if it is made."""
        if self.registry.resumed is not None and call is not None:
            outcome = await self.registry.resumed.instead(call, arguments)
            if outcome is not None:
                return outcome
        if not self.cautions.listed:
            return None
        names = (tool.spec.name, *_identities(tool, arguments))
        doubt = await self.cautions.refusal(names, well_formed(tool.target(arguments)))
        return None if doubt is None else Outcome(status=CallStatus.REFUSED, reason=doubt)

    def _under_way(self, ticket: Ticket, tool: Tool, arguments: Arguments) -> UnderWay:
        text, name = _input_text(tool, arguments), tool.spec.name
        return UnderWay(
            ticket, head_tail(well_formed(text)), lambda: digest_of_call(name, text), self.registry.durable
        )

    @property
    def _offered(self) -> str:
        return ", ".join(spec.name for spec in self.specs) or "none"

    def _blocked_tool(self, tool: Tool) -> str:
        name = tool.spec.name
        if name in self.registry.forbidden:
            return _NO_RIGHT.format(identity=name)
        if name in self.blocked:
            return f"{name} is blocked in this subtask, because it failed before; use one of: {self._offered}"
        return ""

    def _blocked(self, tool: Tool, arguments: Arguments) -> str:
        """Return the reason why a call is refused, with an alternative. Return "" if it is allowed."""
        identities, target = _identities(tool, arguments), well_formed(tool.target(arguments))
        for identity in identities:
            if identity in self.registry.forbidden:
                return _NO_RIGHT.format(identity=identity)
            if identity in self.blocked:
                return f"{identity} is blocked in this subtask, because it failed before; do it another way"
        if self._changed:
            return ""
        mine = {tool.spec.name, *identities}
        for identity, blocked in self.targets:
            if identity in mine and target in (blocked, _normal_target(tool, blocked)):
                return f"{identity} is blocked for {target!r}, it failed before; change the input or the way"
        return ""

    def _refused_unknown(self, name: str, arguments: Arguments, reason: str) -> ToolCall:
        return ToolCall(
            tool=well_formed(name),
            identity=(well_formed(name),),
            input=head_tail(well_formed(_as_json(arguments))),
            status=CallStatus.REFUSED,
            reason=head_tail(well_formed(reason), _REASON_KEPT),
        )

    def _record(self, tool: Tool, arguments: Arguments, outcome: Outcome, started: float) -> ToolCall:
        output, error_output = (
            without_terminal_codes(well_formed(each)) for each in (outcome.output, outcome.error_output)
        )
        kept, error_kept = head_tail(output, self.registry.kept), head_tail(error_output, self.registry.kept // 2)
        total, name = outcome.total_bytes, tool.spec.name
        understood = tool.spec.parameters[0].name in arguments
        return ToolCall(
            tool=name,
            identity=_identities(tool, arguments) if understood else (name,),
            target=well_formed(tool.target(arguments)) if understood else "",
            input=head_tail(well_formed(_input_text(tool, arguments))),
            ran=None if outcome.ran is None else well_formed(outcome.ran),
            status=outcome.status,
            exit_code=outcome.exit_code,
            output=kept,
            error_output=error_kept,
            total_bytes=len(output.encode()) + len(error_output.encode()) if total is None else total,
            truncated=outcome.truncated or kept != output or error_kept != error_output,
            duration_ms=max(0, round((self.registry.clock.monotonic() - started) * 1_000)),
            result_count=outcome.result_count,
            changes=tuple(well_formed(path) for path in outcome.changes),
            bookkeeping=outcome.bookkeeping,
            dropped=tuple(well_formed(path) for path in outcome.dropped),
            withheld_by=outcome.withheld_by,
            reason=None if outcome.reason is None else head_tail(well_formed(outcome.reason), _REASON_KEPT),
            self_contained=outcome.self_contained,
            process=outcome.process,
            overlapped=outcome.overlapped,
            masked=outcome.masked,
        )


_NO_RIGHT = "this agent has no right to use {identity}; do it another way, or report that it cannot be done"


async def _run(tool: Tool, arguments: Arguments) -> Outcome:
    """Run a tool within its time limit. An exception is converted to an outcome."""
    # Only the cancellation of this very call and the user's Ctrl-C propagate. Any other such exception means that
    # the tool has failed, because it exited or awaited something that was cancelled.
    limit = asyncio.timeout(tool.wall_seconds)
    try:
        if not isinstance(tool, Announcing):
            await goes_out(CallEffects.OUTSIDE if tool.spec.writes else CallEffects.NONE)
        async with limit:
            with under_limit(limit):
                return await tool.run(arguments)
    except TimeoutError as error:
        if limit.expired():
            reason = f"{tool.spec.name} did not end within {tool.wall_seconds:g} s and was stopped"
            return Outcome(status=CallStatus.TIMEOUT, reason=reason)
        return Outcome(status=CallStatus.ERROR, reason=f"TimeoutError: {error}")
    except ArtooError as error:
        return Outcome(status=CallStatus.ERROR, reason=str(error))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return Outcome(status=CallStatus.ERROR, reason="CancelledError: it, or what it waited for, was cancelled")
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  # a tool is foreign code: its failure is evidence, and is recorded
        return Outcome(status=CallStatus.ERROR, reason=f"{type(error).__name__}: {error}")


def _normal_target(tool: Tool, blocked: str) -> str:
    return well_formed(tool.target({tool.spec.parameters[0].name: blocked}))


def _identities(tool: Tool, arguments: Arguments) -> tuple[str, ...]:
    return tuple(well_formed(identity) for identity in tool.identities(arguments))


def _input_text(tool: Tool, arguments: Arguments) -> str:
    """Return the input as one text. It is the main argument if there is no other, otherwise all arguments as
    JSON."""
    main = tool.spec.parameters[0].name
    return as_text(arguments[main]) if list(arguments) == [main] else _as_json(arguments)


def _as_json(arguments: Arguments) -> str:
    return json.dumps(dict(arguments), ensure_ascii=False)
