"""Tools as the executor and the planner see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from artoo.contracts.execution import CallEffects, ToolCall
from artoo.contracts.plan import Caution, MustNot

Named = tuple[str, tuple[str, ...]]
"""A name of ours, and its aliases."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool. Values are text; the tool parses what it needs. `aliases`: what other agents call it:
    models write these too, and no prompt shows them. `type` is that of JSON Schema; a number and a boolean are
    checked before the tool gets them.
    """

    name: str
    description: str
    required: bool = True
    aliases: tuple[str, ...] = ()
    type: Literal["string", "number", "boolean"] = "string"

    @property
    def named(self) -> Named:
        """The names alone."""
        return self.name, self.aliases


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a tool is for, short enough for a small model's prompt.

    `parameters[0]` is the main input, the *target*. `body` names the parameter that travels in a fenced block
    (code, file content) when there is one; `whole_lines`: it is a text whose last line ends like the others, which
    a fence does not show (CommonMark 0.31, 4.5). `priority`: lower is tried first (SPEC section 3).
    `reads` and `writes` say what it can do, so that blocking never removes the last tool of either kind.
    `special`: the person's own, made for one purpose; that it did well is worth saying for other requests too.
    `offers`: what the main input may name, a line each (skills); prompts show it in a segment of its own.
    `aliases`: what other agents call it, as with a parameter.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    priority: int
    body: str | None = None
    whole_lines: bool = False
    reads: bool = True
    writes: bool = False
    languages: tuple[str, ...] = field(default=())
    special: bool = False
    offers: tuple[str, ...] = field(default=())
    aliases: tuple[str, ...] = ()

    @property
    def named(self) -> Named:
        """The names alone: what it says of itself differs from one workspace to another."""
        return self.name, self.aliases

    def __hash__(self) -> int:
        # Names are unique in a task; hashing every field cost 25 µs whenever something is looked up by all specs.
        return hash(self.name)


def own_names(named: Iterable[Named]) -> dict[str, str]:
    """What is meant by each alias that leaves nothing open: nothing has that name, and one alone has that alias."""
    known = dict(named)
    having = Counter(alias for aliases in known.values() for alias in set(aliases))
    meant = {alias: name for name, aliases in known.items() for alias in aliases}
    return {alias: name for alias, name in meant.items() if having[alias] == 1 and alias not in known}


@dataclass(frozen=True, slots=True)
class Departure:
    """A call goes out: its input as records show it, how far it reaches, and (`outside` only) its digest."""

    input: str
    effects: CallEffects
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Ticket:
    """Under which act a call is recorded (`ToolStarted.act`), and who is told when it goes out.

    `announce` is quick and does not raise. It hears nothing of a call that is refused.
    """

    act: str
    announce: Callable[[Departure], None]


class Toolbox(Protocol):
    """The tools of one subtask: blocked ones are absent, blocked targets are refused in the call."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Tools that work on this platform and are not blocked, by priority."""
        ...

    @property
    def interrupted(self) -> tuple[ToolCall, ...]:
        """Records of the calls that a cancellation cut off, oldest first: `call` could not return them."""
        ...

    async def call(self, name: str, arguments: Mapping[str, str], ticket: Ticket | None = None) -> ToolCall:
        """Runs one tool and returns its record, whatever happened; raises only CancelledError.

        An unknown name, a missing argument, a blocked tool or target come back as `refused`, with the reason.
        Without a ticket the call is not announced, and a crash in the middle of it leaves nothing to resume.
        """
        ...


Offered = Callable[[], Sequence[ToolSpec]]
"""What a task's tools are, now: for roles that plan and judge with them, and cannot run any."""


class Tools(Protocol):
    """All tools of a task."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Tools that work on this platform, by priority."""
        ...

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> Toolbox:
        """The tools of one subtask under its prohibitions; a call that a caution is about asks a person first."""
        ...

    def identities(self, name: str, arguments: Mapping[str, str]) -> tuple[str, ...]:
        """The identities that a call would have: what blocking and memory speak about."""
        ...
