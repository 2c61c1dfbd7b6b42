"""Define tools as the executor, the planner and the model servers see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from pydantic import JsonValue

from artoo.contracts.execution import CallEffects, ToolCall
from artoo.contracts.plan import Caution, MustNot

Named = tuple[str, tuple[str, ...]]
"""One of our names, and its aliases."""


Arguments = Mapping[str, JsonValue]
"""The arguments of a call, by name."""

TEXT: Mapping[str, JsonValue] = {"type": "string"}
NUMBER: Mapping[str, JsonValue] = {"type": "number"}
INTEGER: Mapping[str, JsonValue] = {"type": "integer"}
BOOLEAN: Mapping[str, JsonValue] = {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool. `schema` is the JSON schema of its value, without the description.

    `aliases` are names by which other agents know it: models write them too, and no prompt shows them. `members`:
    its value is a list of objects, and a call for one object may give these members of it as arguments.
    """

    name: str
    description: str
    required: bool = True
    aliases: tuple[str, ...] = ()
    schema: Mapping[str, JsonValue] = field(default_factory=lambda: TEXT, hash=False)
    members: tuple[str, ...] = ()

    @property
    def named(self) -> Named:
        """Return the names alone."""
        return self.name, self.aliases


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """Describe a tool for models, short enough for a small model's prompt.

    `parameters[0]` is the main input, the *target*. `body` names the parameter that travels in a fenced block of
    the text dialect (code, file content); `whole_lines`: it is a text whose last line ends like the others, which a
    fence does not show (CommonMark 0.31, 4.5). `priority`: lower is tried first (SPEC section 3).
    `reads` and `writes` say what it can do, so that blocking never removes the last tool of either kind.
    `only_reads`: its calls change nothing, so several may run at the same time.
    `special`: the user's own, made for one purpose; that it did well is worth saying for other requests too.
    `offers`: what the main input may name, a line each (skills); prompts show it in a segment of its own.
    `aliases`: names by which other agents know it, as with a parameter. `ignored`: arguments of the same tool of
    other agents that change nothing, such as a remark for the user; a call may have them.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    priority: int
    body: str | None = None
    whole_lines: bool = False
    reads: bool = True
    writes: bool = False
    only_reads: bool = False
    languages: tuple[str, ...] = field(default=())
    special: bool = False
    offers: tuple[str, ...] = field(default=())
    aliases: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def named(self) -> Named:
        """Return the names alone: the description differs from one workspace to another."""
        return self.name, self.aliases

    @property
    def inline(self) -> Parameter | None:
        """Return the parameter that a step's input is for in the text dialect: options of a program are none."""
        apart = (one for one in self.parameters if one.name != self.body)
        return next((one for one in apart if one.required or self.body is None), None)

    def json_schema(self) -> dict[str, JsonValue]:
        """Return the JSON schema of the arguments, as servers take it for a function. Treat it as read-only."""
        return _schema_of(self)

    def __hash__(self) -> int:
        # Names are unique in a task; hashing every field cost 25 µs whenever something is looked up by all specs.
        return hash(self.name)


@lru_cache(maxsize=256)
def _schema_of(spec: ToolSpec) -> dict[str, JsonValue]:
    """Make the schema once: every turn of every conversation sends it."""
    described: dict[str, JsonValue] = {}
    # JSON Schema resolves `$defs` from the root, so the definitions of all parameters move there.
    definitions: dict[str, JsonValue] = {}
    for one in spec.parameters:
        described[one.name] = {name: value for name, value in one.schema.items() if name != "$defs"} | {
            "description": one.description
        }
        defined = one.schema.get("$defs")
        definitions |= defined if isinstance(defined, dict) else {}
    required: list[JsonValue] = [one.name for one in spec.parameters if one.required]
    whole: dict[str, JsonValue] = {
        "type": "object",
        "properties": described,
        "required": required,
        "additionalProperties": False,
    }
    return {**whole, "$defs": definitions} if definitions else whole


def own_names(named: Iterable[Named]) -> dict[str, str]:
    """Return the name behind each unambiguous alias: nothing is named so, and only one has it as an alias."""
    known = dict(named)
    having = Counter(alias for aliases in known.values() for alias in set(aliases))
    meant = {alias: name for name, aliases in known.items() for alias in aliases}
    return {alias: name for alias, name in meant.items() if having[alias] == 1 and alias not in known}


@dataclass(frozen=True, slots=True)
class Departure:
    """An outgoing call: its input as records show it, its effects, and (`outside` only) its digest."""

    input: str
    effects: CallEffects
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The id under which a call is recorded (`ToolStarted.act`), and the function that hears when it goes out.

    `announce` is quick and does not raise. It hears nothing of a call that is refused.
    """

    act: str
    announce: Callable[[Departure], None]


class Toolbox(Protocol):
    """The tools of one subtask: blocked ones are absent, blocked targets are refused in the call."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools that work on this platform and are not blocked, by priority."""
        ...

    async def call(self, name: str, arguments: Arguments, ticket: Ticket | None = None) -> ToolCall:
        """Run one tool and return its record, whatever happened; raises only CancelledError.

        An unknown tool, arguments that do not fit its schema, a blocked tool or target come back as `refused`, with
        the reason. Calls of tools that only read may be made at the same time.
        Without a ticket the call is not announced, and a crash in the middle of it leaves nothing to resume.
        """
        ...


Offered = Callable[[], Sequence[ToolSpec]]
"""Returns a task's tools as they are now, for roles that plan and judge with them and cannot run any."""


class Tools(Protocol):
    """The tools of a task."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools that work on this platform, by priority."""
        ...

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> Toolbox:
        """Return the tools of one subtask under its prohibitions; a call that a caution names asks a user first."""
        ...

    def identities(self, name: str, arguments: Arguments) -> tuple[str, ...]:
        """Return the identities that a call would have, by which blocking and memory know it."""
        ...
