"""`@tool`, which makes a user's function a tool, with its default timeout and its schema.

@tool(writes=True)
def note(text: str, *, title: str = "") -> str:
    "Adds a note to my notebook."
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, EnumType
from typing import Annotated, TypeVar, cast, get_args, get_origin, overload

from pydantic import JsonValue, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import PydanticSerializationError, to_json

from artoo.contracts.errors import ConfigurationError, ToolError
from artoo.contracts.text import shortened, well_formed
from artoo.ports.arguments import as_text
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Arguments, Outcome, argument

Function = Callable[..., object]
F = TypeVar("F", bound=Function)

T = TypeVar("T")


class Dependency:
    """Marks a parameter whose value the program supplies, and not the model."""


Deps = Annotated[T, Dependency]
"""The type of a parameter that is filled from `Artoo(deps=[…])`: `def find(db: Deps[Database], name: str)`."""

USER_SECONDS = 120.0
"""Default time limit for a call of a user's function, in seconds."""

USER_PRIORITY = 80
MOST_DOCUMENTATION = 1_000
"""Maximum number of characters of a tool's description in a prompt."""

_MOST_DESCRIPTION = 200
_ATTRIBUTE = "__artoo_tool__"


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects that calls of a tool may have. `asks`: true if the user is asked before each call, which is the
    default for tools that write.

    `repeatable`: true if the author has declared that the tool changes nothing. Then a call that a crash
    interrupted is repeated, and a call is made without waiting until it is logged to disk.
    """

    reads: bool
    writes: bool
    asks: bool
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class UserTool:
    """A user's function as a tool of artoo. Arguments are converted to the annotated types."""

    function: Function
    name: str
    effects: Effects
    wall_seconds: float
    parameters: tuple[inspect.Parameter, ...]
    readers: Mapping[str, TypeAdapter[object]]
    spec: ToolSpec
    needs: Mapping[str, type] = field(default_factory=dict[str, type])
    given: Mapping[str, object] = field(default_factory=dict[str, object])
    """Values that the program supplies, by the names of the parameters in `needs`."""

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return (self.name,)

    def target(self, arguments: Arguments) -> str:
        """Return the text of the main argument, or "" for a function without parameters."""
        return argument(arguments, self.parameters[0].name) if self.parameters else ""

    async def run(self, arguments: Arguments) -> Outcome:
        """Call the function. An async function runs in this event loop, any other in a thread. Its exceptions
        propagate to the registry."""
        values = {
            one.name: self._value(one, arguments[one.name]) for one in self.parameters if one.name in arguments
        }
        values |= self.given
        if inspect.iscoroutinefunction(self.function):
            result = self.function(**values)
        else:
            result = await in_thread(self.function, **values)
        value = await _by_itself(result)
        # A generator is limited, because it may never end.
        if inspect.isgenerator(value) or inspect.isasyncgen(value):
            raise ToolError(f"{self.name} returned a generator; let it return a list, as in: return list(…)")
        return Outcome(output=text_of(value))

    def _value(self, one: inspect.Parameter, value: JsonValue) -> object:
        """Convert an argument to the type of its parameter. Blank text that does not fit the type is replaced by
        the parameter's default."""
        try:
            return _read(self.readers[one.name], value)
        except ValidationError as error:
            text = as_text(value)
            if not text.strip() and one.default is not inspect.Parameter.empty:
                return cast("object", one.default)
            problem = error.errors(include_url=False)[0]["msg"]
            raise ToolError(f"{self.name}: {one.name} = {text[:100]!r} does not fit: {problem}") from error


_NOTHING = Parameter("nothing", "takes no argument", required=False)
"""The parameter of a tool whose function has none, because every tool needs a main input. Its value is ignored."""


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    reads: bool = True,
    writes: bool | None = None,
    asks: bool | None = None,
    seconds: float = USER_SECONDS,
) -> Callable[[F], F]: ...
def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    reads: bool = True,
    writes: bool | None = None,
    asks: bool | None = None,
    seconds: float = USER_SECONDS,
) -> F | Callable[[F], F]:
    """Make a function usable as a tool; it can still be called as before.

    A model sees the name and the first paragraph of the docstring (or all of `description`). The parameters come
    from the signature. `writes=True` declares that the tool changes something, so the user is asked before each
    call unless `asks=False`. `writes=False` promises that it changes nothing, so a call that a crash interrupted is
    repeated. If `writes` is not given, the user is asked only before an interrupted call is repeated. `seconds`
    limits the time of a call. A method is marked in its class, and passed to `Artoo` as a bound method:
    `tools=[calendar.at]`. Raises ConfigurationError for a signature that a model cannot call, and for an object
    that cannot be marked.
    """
    effects = Effects(reads, bool(writes), bool(writes) if asks is None else asks, repeatable=writes is False)

    def mark(marked: F) -> F:
        made = _made(marked, name, description, effects, seconds)
        try:
            setattr(marked, _ATTRIBUTE, made)
        except AttributeError as error:
            advice = "of a method the one in its class; a bound one goes to Artoo(tools=…) as it is"
            raise ConfigurationError(f"tool {made.name}: mark a function with @tool, {advice}") from error
        return marked

    return mark if function is None else mark(function)


def user_tool(function: Function, deps: Sequence[object] = ()) -> UserTool:
    """Return the tool that `@tool` made of a function. For a function without `@tool`, the defaults are used: it
    only reads, and never asks.

    `deps`: values for the parameters of a `Deps` type. For each parameter the first value of its type is used.
    Raises ConfigurationError as `tool` does, and also for an unbound method or a missing dependency.
    """
    made = _user_tool(function)
    given = dict[str, object]()
    for name, kind in made.needs.items():
        found = [one for one in deps if isinstance(one, kind)]
        if not found:
            raise ConfigurationError(
                f"tool {made.name}: {name} needs a {kind.__name__}; give one with Artoo(deps=[…])"
            )
        given[name] = found[0]
    return replace(made, given=given) if given else made


def _user_tool(function: Function) -> UserTool:
    made = getattr(function, _ATTRIBUTE, None)
    if not isinstance(made, UserTool):
        made = _made(function, None, None, Effects(reads=True, writes=False, asks=False), USER_SECONDS)
    elif inspect.ismethod(function):
        # the method was marked in its class and is bound now
        return _made(function, made.name, made.spec.description, made.effects, made.wall_seconds)
    if made.parameters and made.parameters[0].name == "self":
        raise ConfigurationError(f"tool {made.name}: it is a method; give it bound: the object's own {made.name}")
    return made


def text_of(result: object) -> str:
    """Convert a function's result to the output of a tool. Text stays unchanged, None becomes "", and other values
    become JSON if possible."""
    if result is None:
        return ""
    if isinstance(result, str):
        return result
    if isinstance(result, bytes):
        return result.decode("utf-8", "replace")
    try:
        return to_json(result, fallback=str).decode()
    except (PydanticSerializationError, ValueError):
        return str(result)


async def _by_itself(result: object) -> object:
    """Await a result in a task of its own. A function that cancels its own task then ends only this call, and not
    the attempt that waits for the call.
    """

    async def held() -> tuple[object, SystemExit | None]:
        try:
            return await cast("Awaitable[object]", result) if inspect.isawaitable(result) else result, None
        except SystemExit as error:
            # An exception that ends the event loop is returned here, because it would end the loop if the task
            # raised it.
            return None, error

    value, exited = await asyncio.create_task(held())
    if exited is not None:
        raise exited
    return value


def _made(
    function: Function, name: str | None, description: str | None, effects: Effects, seconds: float
) -> UserTool:
    called = name or getattr(function, "__name__", "")
    if not called.isidentifier():
        raise ConfigurationError(f"tool {called!r}: a tool's name is letters, digits and _; give one with name=")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(f"tool {called}: it yields; let it return a list, as in: return list(…)")
    said = (description or (inspect.getdoc(function) or "").strip().split("\n\n")[0]).strip()
    if not said:
        raise ConfigurationError(f"tool {called}: say what it does in a docstring or with description=")
    if not seconds > 0:
        raise ConfigurationError(f"tool {called}: seconds={seconds} is not a positive time")
    parameters, readers, needs = _signature(function, called)
    schemas = _schemas(readers)
    spec = ToolSpec(
        name=called,
        description=shortened(well_formed(" ".join(said.split())), MOST_DOCUMENTATION),
        parameters=tuple(_parameter(one, schemas.get(one.name, {})) for one in parameters) or (_NOTHING,),
        priority=USER_PRIORITY,
        reads=effects.reads,
        writes=effects.writes,
        only_reads=effects.repeatable,
        special=True,
    )
    return UserTool(function, called, effects, seconds, parameters, readers, spec, needs)


def _schemas(readers: Mapping[str, TypeAdapter[object]]) -> dict[str, dict[str, JsonValue]]:
    """Return the JSON schema of each parameter."""
    # A type without a JSON schema gets an empty one, because its type adapter validates the values anyway.
    made: dict[str, dict[str, JsonValue]] = {}
    for name, reader in readers.items():
        try:
            made[name] = reader.json_schema()
        except PydanticInvalidForJsonSchema:
            made[name] = {}
    return made


def _parameter(one: inspect.Parameter, schema: Mapping[str, JsonValue]) -> Parameter:
    untyped = one.annotation is inspect.Parameter.empty
    kind = "text" if untyped or one.annotation is str else _kind(one.annotation)
    required = one.default is inspect.Parameter.empty
    default = "" if required else f", default {one.default!r}"
    return Parameter(one.name, f"{kind}{default}"[:_MOST_DESCRIPTION], required, schema=schema)


def _kind(annotation: object) -> str:
    """Describe a type in words for a model. An enumeration is described by its values, because a call may use only
    these."""
    if isinstance(annotation, EnumType):
        return " or ".join(repr(each.value) for each in cast("type[Enum]", annotation))
    return inspect.formatannotation(annotation)


def _signature(
    function: Function, name: str
) -> tuple[tuple[inspect.Parameter, ...], dict[str, TypeAdapter[object]], dict[str, type]]:
    """Return the parameters in order, their type adapters, and the types of values that the program supplies.

    Raises ConfigurationError.
    """
    try:
        found = tuple(inspect.signature(function, eval_str=True).parameters.values())
    except (TypeError, ValueError, NameError, AttributeError) as error:
        raise ConfigurationError(f"tool {name}: its signature cannot be read: {error}") from error
    for one in found:
        if one.kind not in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            raise ConfigurationError(f"tool {name}: parameter {one} cannot be given by name; list its parameters")
    needs = {one.name: kind for one in found if (kind := _dependency(one, name)) is not None}
    left = tuple(one for one in found if one.name not in needs)
    return left, {one.name: _reader(one, name) for one in left}, needs


def _dependency(one: inspect.Parameter, name: str) -> type | None:
    """Return the class of a parameter that the program supplies. Return None for other parameters. Raises
    ConfigurationError."""
    if get_origin(one.annotation) is not Annotated:
        return None
    kind, *marks = get_args(one.annotation)
    if Dependency not in marks:
        return None
    plain = get_origin(kind) or kind
    if not isinstance(plain, type):
        raise ConfigurationError(f"tool {name}: {one.name}: Deps wants a class, and not {kind!r}")
    return plain


def _reader(one: inspect.Parameter, name: str) -> TypeAdapter[object]:
    try:
        return TypeAdapter(str if one.annotation is inspect.Parameter.empty else one.annotation)
    except PydanticUserError as error:
        kind = inspect.formatannotation(one.annotation)
        advice = "use str, int, float, bool, list, dict or a pydantic model"
        raise ConfigurationError(f"tool {name}: {one.name}: {kind} cannot be made from text; {advice}") from error


def _read(reader: TypeAdapter[object], value: JsonValue) -> object:
    """Convert a value to the parameter's type. Text is tried as a plain string first, then as JSON. Raises
    ValidationError."""
    if not isinstance(value, str):
        return reader.validate_json(to_json(value))
    try:
        return reader.validate_strings(value)
    except ValidationError as as_it_stands:
        try:
            return reader.validate_json(value)
        except ValidationError as as_json:
            is_json = all(each["type"] != "json_invalid" for each in as_json.errors(include_url=False))
            raise (as_json if is_json else as_it_stands) from None
