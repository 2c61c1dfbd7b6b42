"""All tools of a task, and what a subtask may use of them: every call ends as a record, whatever happens.

Registry ──► toolbox(subtask, must_not) ──► call ──► refused │ ok │ error │ timeout │ interrupted
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from artoo.contracts.errors import ArtooError, ConfigurationError, NotLogged
from artoo.contracts.execution import CallEffects, CallStatus, ToolCall
from artoo.contracts.plan import Caution, MustNot
from artoo.contracts.well_formed import well_formed
from artoo.ports.clock import Clock
from artoo.ports.tools import Ticket, ToolSpec
from artoo.ports.waiting import under_limit
from artoo.tools.cautions import Cautions
from artoo.tools.commands import ERROR_OUTPUT_KEPT
from artoo.tools.gate import Gate
from artoo.tools.output import head_tail
from artoo.tools.resumed import Resumed
from artoo.tools.tool import Arguments, Outcome, Tool, mistyped
from artoo.tools.under_way import (
    Announcing,
    Durable,
    UnderWay,
    digest_of_call,
    goes_out,
    nothing_to_keep,
    under_way,
)

MAX_ARGUMENT = 1_000_000
"""Characters of one argument; more is refused."""

CUT_OFF = "stopped before it ended; nothing is known of it"
"""Why a call has no outcome that a cancellation or the limit of the attempt cut off."""


Observer = Callable[[ToolCall], None]
"""Hears of every call that ran, when its record is complete. Quick, never raises."""


def _unseen(call: ToolCall) -> None:
    """Nobody watches."""


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
    ) -> None:
        """`tools` are those that work on this platform; `observe` sees every record; `gate` asks where memory is
        in doubt (None: nobody can be asked). `durable` is waited for before a call may have effects; `resumed`
        looks at the calls of a task that goes on after a crash.

        Raises ConfigurationError when two tools have one name.
        """
        self._tools: dict[str, Tool] = {}
        self._specs: tuple[ToolSpec, ...] = ()
        self.add(tools)
        self._clock = clock
        self._observe = observe
        self._gate = gate if gate is not None else Gate()
        self._durable = durable
        self._resumed = resumed

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Tools that work on this platform, by priority."""
        return self._specs

    def add(self, tools: Iterable[Tool]) -> None:
        """More tools, before the first toolbox is asked for. Raises ConfigurationError when two have one name."""
        ordered = sorted((*self._tools.values(), *tools), key=lambda tool: tool.spec.priority)
        names = [tool.spec.name for tool in ordered]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(f"two tools have the same name: {', '.join(twice)}; rename one of each")
        self._tools = dict(zip(names, ordered, strict=True))
        self._specs = tuple(tool.spec for tool in ordered)

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> SubTaskToolbox:
        """The tools of one subtask under its prohibitions and cautions."""
        blocked = must_not.tools
        open_to_it = self._specs if not blocked else tuple(one for one in self._specs if one.name not in blocked)
        doubts = Cautions(cautions, self._gate)
        return SubTaskToolbox(
            self._tools, open_to_it, must_not, self._clock, self._observe, doubts, self._durable, self._resumed
        )

    def identities(self, name: str, arguments: Mapping[str, str]) -> tuple[str, ...]:
        """The identities that a call would have: what blocking and memory speak about."""
        tool = self._tools.get(name)
        return _identities(tool, spread(tool.spec, arguments)) if tool is not None else (well_formed(name),)


@dataclass(slots=True)
class SubTaskToolbox:
    """Implements `ports.tools.Toolbox`: blocked tools are absent, blocked programs and targets are refused.

    `specs` are those of `tools` that are not blocked, by priority. A target failed in the world as it was: once
    something has been changed here it may be tried again, as tests are after a correction.
    """

    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    must_not: MustNot
    clock: Clock
    observe: Observer = _unseen
    cautions: Cautions = field(default_factory=Cautions)
    durable: Durable = nothing_to_keep
    resumed: Resumed | None = None
    _interrupted: list[ToolCall] = field(default_factory=list[ToolCall])
    _changed: bool = False

    @property
    def interrupted(self) -> tuple[ToolCall, ...]:
        """The records of calls that a cancellation cut off."""
        return tuple(self._interrupted)

    async def call(self, name: str, arguments: Mapping[str, str], ticket: Ticket | None = None) -> ToolCall:
        """Runs one tool and returns its record, whatever happened; raises only CancelledError."""
        started = self.clock.monotonic()
        tool = self.tools.get(name)
        arguments = arguments if tool is None else spread(tool.spec, arguments)
        refusal = self._refusal(name, tool, arguments)
        if tool is None or refusal is not None:
            outcome = Outcome(status=CallStatus.REFUSED, reason=refusal)
            return self._record(name, tool, arguments, outcome, started)
        call = None if ticket is None else self._under_way(ticket, tool, arguments)
        with under_way(call):
            outcome = await self._instead(tool, arguments, call)
            if outcome is None:
                outcome = await self._run(tool, arguments, started)
        record = self._record(name, tool, arguments, outcome, started)
        self._changed = self._changed or record.changed_something
        self.observe(record)
        return record

    async def _instead(self, tool: Tool, arguments: Arguments, call: UnderWay | None) -> Outcome | None:
        """How a call ends that does not go out after all: a crash cut it off before, or memory is in doubt."""
        if self.resumed is not None and call is not None:
            outcome = await self.resumed.instead(call, arguments)
            if outcome is not None:
                return outcome
        doubt = await self._doubt(tool, arguments)
        return None if doubt is None else Outcome(status=CallStatus.REFUSED, reason=doubt)

    async def _run(self, tool: Tool, arguments: Arguments, started: float) -> Outcome:
        """Runs the tool; a cancellation leaves a record, which `call` cannot return."""
        try:
            if not isinstance(tool, Announcing):
                await goes_out(CallEffects.OUTSIDE if tool.spec.writes else CallEffects.NONE)
            return await _bounded(tool, arguments)
        except NotLogged as error:
            return Outcome(status=CallStatus.ERROR, reason=str(error))
        except asyncio.CancelledError:
            cut = Outcome(status=CallStatus.INTERRUPTED, reason=CUT_OFF)
            self._interrupted.append(self._record(tool.spec.name, tool, arguments, cut, started))
            raise

    def _under_way(self, ticket: Ticket, tool: Tool, arguments: Arguments) -> UnderWay:
        text = _input_text(tool, arguments)
        name = tool.spec.name
        return UnderWay(ticket, head_tail(well_formed(text)), lambda: digest_of_call(name, text), self.durable)

    def _refusal(self, name: str, tool: Tool | None, arguments: Arguments) -> str | None:
        """Why a call may not happen, in words that say what may; None when it may."""
        if tool is None:
            return f"there is no tool {name!r}; the tools are: {self._offered}"
        if name in self.must_not.tools:
            return f"{name} is blocked in this subtask, because it failed before; use one of: {self._offered}"
        return _wrong_arguments(tool.spec, arguments) or self._blocked(tool, arguments)

    async def _doubt(self, tool: Tool, arguments: Arguments) -> str | None:
        """Why a call that memory is in doubt about may not happen: nobody agreed to it."""
        if not self.cautions.listed:
            return None
        names = (tool.spec.name, *_identities(tool, arguments))
        return await self.cautions.refusal(names, well_formed(tool.target(arguments)))

    @property
    def _offered(self) -> str:
        return ", ".join(spec.name for spec in self.specs) or "none"

    def _blocked(self, tool: Tool, arguments: Arguments) -> str | None:
        identities, target = _identities(tool, arguments), well_formed(tool.target(arguments))
        for identity in identities:
            if identity in self.must_not.tools:
                return f"{identity} is blocked in this subtask, because it failed before; do it another way"
        if self._changed:
            return None
        mine = {tool.spec.name, *identities}
        for identity, blocked in self.must_not.targets:
            if identity in mine and target in (blocked, _normal_target(tool, blocked)):
                return f"{identity} is blocked for {target!r}, it failed before; change the input or the way"
        return None

    def _record(
        self, name: str, tool: Tool | None, arguments: Arguments, outcome: Outcome, started: float
    ) -> ToolCall:
        output, error_output = well_formed(outcome.output), well_formed(outcome.error_output)
        kept, error_kept = head_tail(output, outcome.kept), head_tail(error_output, ERROR_OUTPUT_KEPT)
        total = outcome.total_bytes
        understood = tool is not None and tool.spec.parameters[0].name in arguments
        return ToolCall(
            tool=well_formed(name),
            identity=_identities(tool, arguments) if tool is not None and understood else (well_formed(name),),
            target=well_formed(tool.target(arguments)) if tool is not None and understood else "",
            input=head_tail(well_formed(_input_text(tool, arguments))),
            ran=None if outcome.ran is None else well_formed(outcome.ran),
            status=outcome.status,
            exit_code=outcome.exit_code,
            output=kept,
            error_output=error_kept,
            total_bytes=len(output.encode()) + len(error_output.encode()) if total is None else total,
            truncated=outcome.truncated or kept != output or error_kept != error_output,
            duration_ms=max(0, round((self.clock.monotonic() - started) * 1_000)),
            result_count=outcome.result_count,
            changes=tuple(well_formed(path) for path in outcome.changes),
            bookkeeping=outcome.bookkeeping,
            dropped=tuple(well_formed(path) for path in outcome.dropped),
            withheld_by=outcome.withheld_by,
            reason=None if outcome.reason is None else head_tail(well_formed(outcome.reason), ERROR_OUTPUT_KEPT),
            self_contained=outcome.self_contained,
            process=outcome.process,
            overlapped=outcome.overlapped,
        )


def spread(spec: ToolSpec, arguments: Arguments) -> Arguments:
    """The arguments, taken apart when all of them came as one JSON object in the main one.

    A caller that has room for one text only can still reach a tool that takes several.
    """
    main = spec.parameters[0].name
    if list(arguments) != [main] or len(spec.parameters) == 1 or not arguments[main].lstrip().startswith("{"):
        return arguments
    try:
        found: object = json.loads(arguments[main])
        values = cast("dict[str, object]", found) if isinstance(found, dict) else {}
        if values and values.keys() <= {one.name for one in spec.parameters}:
            return {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    except (ValueError, RecursionError):
        pass  # no JSON, or nested deeper than can be read
    return arguments


async def _bounded(tool: Tool, arguments: Arguments) -> Outcome:
    """Runs a tool within its wall limit; what it raises becomes the outcome.

    Only the cancellation of this very call and a person's Ctrl-C pass: a tool that exits, or awaits what somebody
    has cancelled, has failed.
    """
    limit = asyncio.timeout(tool.wall_seconds)
    try:
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


def _wrong_arguments(spec: ToolSpec, arguments: Arguments) -> str | None:
    """What is wrong with the arguments' names and sizes, and what the tool takes."""
    known = {parameter.name for parameter in spec.parameters}
    if unknown := [name for name in arguments if name not in known]:
        return f"{spec.name} has no argument {', '.join(map(repr, unknown))}; it takes: {_taken(spec)}"
    if missing := [one.name for one in spec.parameters if one.required and one.name not in arguments]:
        return f"{spec.name} needs {', '.join(map(repr, missing))}; it takes: {_taken(spec)}"
    main = spec.parameters[0]
    if main.required and not arguments[main.name].strip():
        return f"{spec.name}: {main.name!r} is empty; it is {main.description}"
    if wrong := next(filter(None, (mistyped(one, arguments.get(one.name, "")) for one in spec.parameters)), ""):
        return f"{spec.name}: {wrong}"
    if too_long := [name for name, value in arguments.items() if len(value) > MAX_ARGUMENT]:
        return f"{spec.name}: {too_long[0]!r} is longer than {MAX_ARGUMENT} characters; do it in parts"
    return None


def _taken(spec: ToolSpec) -> str:
    return ", ".join(f"{one.name}{'' if one.required else ' (optional)'}" for one in spec.parameters)


def _normal_target(tool: Tool, blocked: str) -> str:
    return well_formed(tool.target({tool.spec.parameters[0].name: blocked}))


def _identities(tool: Tool, arguments: Arguments) -> tuple[str, ...]:
    return tuple(well_formed(identity) for identity in tool.identities(arguments))


def _input_text(tool: Tool | None, arguments: Arguments) -> str:
    """The input as one text: the main argument alone when it is the only one, else all as JSON."""
    if tool is not None and list(arguments) == [tool.spec.parameters[0].name]:
        return arguments[tool.spec.parameters[0].name]
    return json.dumps(dict(arguments), ensure_ascii=False)
