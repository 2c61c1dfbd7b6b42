"""The interface of tools, with spec, parameters, JSON types, tickets, and a subtask's toolbox."""

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
"""A name of artoo's own, and its aliases."""


Arguments = Mapping[str, JsonValue]
"""The arguments of a call, by name."""

TEXT: Mapping[str, JsonValue] = {"type": "string"}
NUMBER: Mapping[str, JsonValue] = {"type": "number"}
INTEGER: Mapping[str, JsonValue] = {"type": "integer"}
BOOLEAN: Mapping[str, JsonValue] = {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool. `schema` is the JSON schema of its value, without the description.

    `aliases` are its names in other agents; models write them too, and no prompt shows them. `members`: the value
    is a list of objects, and a call with one object may give these members of the object as arguments. `clear`:
    the name and the schema say enough for function calling, so the description is only for the text dialect, which
    does not show the name.
    """

    name: str
    description: str
    required: bool = True
    aliases: tuple[str, ...] = ()
    schema: Mapping[str, JsonValue] = field(default_factory=lambda: TEXT, hash=False)
    members: tuple[str, ...] = ()
    clear: bool = False

    @property
    def named(self) -> Named:
        """Return the name and its aliases."""
        return self.name, self.aliases


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """The description of a tool for models, short enough for a small model's prompt.

    `parameters[0]` is the main input, the *target*. `body` names the parameter that is sent in a fenced block of
    the text dialect (code, file content). `whole_lines`: the body's last line ends with a line end, which a fence
    does not show (CommonMark 0.31, 4.5). `priority`: tools with lower numbers are tried first (SPEC section 3).
    `reads` and `writes` are its abilities, so that blocking never removes the last tool with either.
    `only_reads`: its calls change nothing, so several may run at the same time. `special`: a tool of the user's
    own for one purpose, whose success is worth recalling for other requests too. `offers` lists the possible
    values of the main input, one line each (skills); prompts show it in its own segment. `aliases` are its names
    in other agents, as with a parameter. `ignored` are arguments that other agents' versions of the tool have and
    that change nothing, such as a remark for the user; a call may contain them."""

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
        """Return the name and its aliases, without the description, which differs between workspaces."""
        return self.name, self.aliases

    @property
    def inline(self) -> Parameter | None:
        """Return the parameter that takes a step's input in the text dialect; None if there is only a body."""
        apart = (one for one in self.parameters if one.name != self.body)
        return next((one for one in apart if one.required or self.body is None), None)

    def json_schema(self) -> dict[str, JsonValue]:
        """Return the JSON schema of the arguments, in the form for function calling. Treat it as read-only."""
        return _schema_of(self)

    def __hash__(self) -> int:
        # Names are unique in a task; hashing every field would take 25 µs for each look-up by all specs.
        return hash(self.name)


@lru_cache(maxsize=256)
def _schema_of(spec: ToolSpec) -> dict[str, JsonValue]:
    """Build the schema once, because every turn of every conversation sends it."""
    described: dict[str, JsonValue] = {}
    # JSON Schema resolves `$defs` from the root, so the definitions of all parameters move there.
    definitions: dict[str, JsonValue] = {}
    for one in spec.parameters:
        described[one.name] = {name: value for name, value in one.schema.items() if name != "$defs"} | (
            {} if one.clear else {"description": one.description}
        )
        defined = one.schema.get("$defs")
        definitions |= defined if isinstance(defined, dict) else {}
    required: list[JsonValue] = [one.name for one in spec.parameters if one.required]
    # Without `additionalProperties`, because every call carries the schema, and `read_arguments` refuses others.
    whole: dict[str, JsonValue] = {"type": "object", "properties": described}
    further: dict[str, JsonValue] = {"required": required, "$defs": definitions}
    return whole | {name: value for name, value in further.items() if value}


def own_names(named: Iterable[Named]) -> dict[str, str]:
    """Return the name for each unambiguous alias, which is no name itself and an alias of only one name."""
    known = dict(named)
    having = Counter(alias for aliases in known.values() for alias in set(aliases))
    meant = {alias: name for name, aliases in known.items() for alias in aliases}
    return {alias: name for alias, name in meant.items() if having[alias] == 1 and alias not in known}


@dataclass(frozen=True, slots=True)
class Departure:
    """A call that starts: its input as it is recorded, its effects, and its digest (only for `outside`)."""

    input: str
    effects: CallEffects
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The id under which a call is recorded (`ToolStarted.act`), and a callback for its start.

    `announce` must return quickly and not raise. It is not called for a refused call."""

    act: str
    announce: Callable[[Departure], None]


class Toolbox(Protocol):
    """The tools of one subtask. Blocked tools are absent, and calls with blocked targets are refused."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools that work on this platform and are not blocked, by priority."""
        ...

    async def call(self, name: str, arguments: Arguments, ticket: Ticket | None = None) -> ToolCall:
        """Run one tool and return its record, even if it fails; raises only CancelledError.

        Calls with an unknown tool, invalid arguments, or a blocked tool or target have the status `refused` and a
        reason. Calls of tools that only read may run at the same time. Without a ticket the call is not
        announced, so a task cannot be resumed after a crash during the call."""
        ...


Offered = Callable[[], Sequence[ToolSpec]]
"""A function that returns a task's present tools, for roles that plan and judge but cannot run tools."""


class Tools(Protocol):
    """The tools of a task."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools that work on this platform, by priority."""
        ...

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> Toolbox:
        """Return the tools of one subtask without the prohibited ones. Calls with a caution ask the user first."""
        ...

    def identities(self, name: str, arguments: Arguments) -> tuple[str, ...]:
        """Return the identities of a call, which blocking and memory use."""
        ...
