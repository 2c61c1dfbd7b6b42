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
"""A name that artoo itself uses, and the aliases for it."""


Arguments = Mapping[str, JsonValue]
"""The arguments of a call by their names."""

TEXT: Mapping[str, JsonValue] = {"type": "string"}
NUMBER: Mapping[str, JsonValue] = {"type": "number"}
INTEGER: Mapping[str, JsonValue] = {"type": "integer"}
BOOLEAN: Mapping[str, JsonValue] = {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool. `schema` is the JSON schema of its value, without the description.

    `aliases` are the names that this argument has in other agents. Models write these names too, although no prompt
    shows them. If `members` are given, the value is a list of objects. A call with a single object may give these
    members of the object as separate arguments. `clear` is true if the name and the schema say enough for function
    calling. The description is then only used in the text dialect, which does not show the name.
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

    `parameters[0]` is the main input, which is called the *target*. `body` names the parameter that is sent in a
    fenced block of the text dialect (code, file content). `whole_lines` is true if the last line of the body ends
    with a line end, which a fence does not show (CommonMark 0.31, 4.5). `priority` gives the order in which tools
    are tried: tools with lower numbers come first (SPEC section 3). `reads` and `writes` say what the tool is able
    to do. Blocking never removes the last tool that is able to read or to write. `only_reads` is true if the calls
    of the tool change nothing, so that several of them may run at the same time. `special` is true for a tool that
    the user added for one purpose. Its success is worth recalling for other requests too. `offers` lists the
    possible values of the main input, for example the skills, with one line for each. Prompts show this list in a
    segment of its own. `aliases` are the names that the tool has in other agents, as with a parameter. `ignored`
    are arguments that change nothing, such as a remark for the user. Versions of the tool in other agents have
    them, so a call may contain them."""

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
        """Return the name and the aliases, but not the description, which may differ between workspaces."""
        return self.name, self.aliases

    @property
    def inline(self) -> Parameter | None:
        """Return the parameter that takes the input of a step in the text dialect. Return None if the tool takes
        only a body."""
        apart = (one for one in self.parameters if one.name != self.body)
        return next((one for one in apart if one.required or self.body is None), None)

    def json_schema(self) -> dict[str, JsonValue]:
        """Return the JSON schema of the arguments, in the form for function calling. The caller must not change the
        returned object."""
        return _schema_of(self)

    def __hash__(self) -> int:
        # The name is hashed alone, because names are unique within a task, and hashing all fields would take 25 µs
        # each time a tool is looked up by all specs.
        return hash(self.name)


@lru_cache(maxsize=256)
def _schema_of(spec: ToolSpec) -> dict[str, JsonValue]:
    """Build the schema once and keep it, because every turn of every conversation sends it."""
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
    # `additionalProperties` is left out, because every call to a model carries the schema, and `read_arguments`
    # refuses unknown arguments anyway.
    whole: dict[str, JsonValue] = {"type": "object", "properties": described}
    further: dict[str, JsonValue] = {"required": required, "$defs": definitions}
    return whole | {name: value for name, value in further.items() if value}


def own_names(named: Iterable[Named]) -> dict[str, str]:
    """Return a mapping from each unambiguous alias to the name it stands for. An alias is unambiguous if it belongs
    to one name only and is no name itself."""
    known = dict(named)
    having = Counter(alias for aliases in known.values() for alias in set(aliases))
    meant = {alias: name for name, aliases in known.items() for alias in aliases}
    return {alias: name for alias, name in meant.items() if having[alias] == 1 and alias not in known}


@dataclass(frozen=True, slots=True)
class Departure:
    """The start of a call: its input as it will be recorded, its effects, and its digest. The digest is only given
    for calls with effects `outside`."""

    input: str
    effects: CallEffects
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Ticket:
    """The id under which a call is recorded (`ToolStarted.act`), and the function `announce` that is called when
    the call starts.

    `announce` must return quickly and must not raise. It is not called for a refused call."""

    act: str
    announce: Callable[[Departure], None]


class Toolbox(Protocol):
    """The tools of one subtask. Blocked tools are not offered, and calls with blocked targets are refused."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools that work on this platform and are not blocked, in the order of their priorities."""
        ...

    async def call(self, name: str, arguments: Arguments, ticket: Ticket | None = None) -> ToolCall:
        """Run one tool and return the record of the call, even if the call fails. Only CancelledError is raised.

        Calls with an unknown tool, invalid arguments, or a blocked tool or target have the status `refused` and a
        reason. Calls of tools that only read may run at the same time. Without a ticket, the start of the call is
        not announced, so a task cannot be resumed after a crash during this call."""
        ...


Offered = Callable[[], Sequence[ToolSpec]]
"""A function that returns the tools that a task has now. It is for roles that plan and judge but cannot run
tools."""


class Tools(Protocol):
    """The tools of a task."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """Return the tools that work on this platform, in the order of their priorities."""
        ...

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> Toolbox:
        """Return the toolbox of one subtask, without the tools that `must_not` prohibits. A call to which a caution
        applies is only made after the user was asked."""
        ...

    def identities(self, name: str, arguments: Arguments) -> tuple[str, ...]:
        """Return the identities of a call. They are used for blocking tools and as keys in memory."""
        ...
