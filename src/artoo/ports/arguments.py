"""Convert the arguments of a tool call to the types of its schema, with the longest text.

    aliases → own names, members → a list of objects, text → number, boolean, list or object, then the check

Models that call tools natively give typed values; the text dialect gives text. Both yield the same arguments.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import cast

from pydantic import JsonValue

from artoo.ports.tools import Arguments, Parameter, ToolSpec, own_names

# Maximum number of characters of one argument; longer arguments are refused.
MAX_ARGUMENT = 1_000_000

_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_EVERY_TYPE = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_WORDS = {"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
_SHOWN = 60
_Schema = Mapping[str, JsonValue]


def read_arguments(spec: ToolSpec, given: Arguments) -> tuple[Arguments, str]:
    """Return the arguments with the tool's own names and types, and an error message (empty if they are valid).

    Arguments whose value is null are left out."""
    arguments = _gathered(spec, _own_names(spec, given))
    known = {one.name: one for one in spec.parameters}
    typed = {
        name: _typed(known[name], value) if name in known else value
        for name, value in arguments.items()
        if name not in known or not _is_left_out(known[name], value)
    }
    return typed, _problem(spec, known, typed)


def _problem(spec: ToolSpec, known: Mapping[str, Parameter], arguments: Arguments) -> str:
    if unknown := [name for name in arguments if name not in known]:
        return f"{spec.name} has no argument {', '.join(map(repr, unknown))}; it takes: {_taken(spec)}"
    if missing := [one.name for one in spec.parameters if one.required and one.name not in arguments]:
        return f"{spec.name} needs {', '.join(map(repr, missing))}; it takes: {_taken(spec)}"
    # An empty main argument would reach the tool as "the whole project" or "no file".
    main = spec.parameters[0]
    if main.required and isinstance(value := arguments[main.name], str) and not value.strip():
        return f"{spec.name}: {main.name!r} is empty; it is {main.description}"
    wrong = (_mismatch(known[name], value) for name, value in arguments.items())
    if said := next(filter(None, wrong), ""):
        return f"{spec.name}: {said}"
    if too_long := [name for name, value in arguments.items() if len(as_text(value)) > MAX_ARGUMENT]:
        return f"{spec.name}: {too_long[0]!r} is longer than {MAX_ARGUMENT} characters; do it in parts"
    return ""


def as_text(value: JsonValue) -> str:
    """Return text unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _own_names(spec: ToolSpec, given: Arguments) -> dict[str, JsonValue]:
    """Rename aliases. If two arguments would get the same name, both of them keep the names that they were
    given."""
    # An alias is only replaced if no argument has that name itself and if no second argument has the same alias.
    own = own_names(one.named for one in spec.parameters)
    there = {name: value for name, value in given.items() if value is not None and name not in spec.ignored}
    meant = [own.get(name, name) for name in there]
    return {
        wanted if meant.count(wanted) == 1 else name: value
        for (name, value), wanted in zip(there.items(), meant, strict=True)
    }


def _gathered(spec: ToolSpec, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """If members of an object were given as separate arguments, collect them into a list with one object."""
    for one in spec.parameters:
        loose = [name for name in arguments if name in one.members]
        if loose and one.name not in arguments:
            arguments[one.name] = [{name: arguments.pop(name) for name in loose}]
    return arguments


def _is_left_out(parameter: Parameter, value: JsonValue) -> bool:
    """Return whether an optional argument counts as left out: it is blank text, and its schema does not allow free
    text."""
    blank = isinstance(value, str) and not value.strip()
    free = "string" in json_types(parameter.schema) and "enum" not in parameter.schema
    return blank and not parameter.required and not free


def _typed(parameter: Parameter, value: JsonValue) -> JsonValue:
    """Convert a value to a type of the schema, if it is text that represents one; otherwise return it unchanged."""
    types = json_types(parameter.schema)
    # JSON has one number type, and some models write every count as a float.
    if isinstance(value, float) and "number" not in types and value.is_integer():
        return int(value)
    if not isinstance(value, str) or "string" in types:
        return value
    return next((read for read in _readings(value, types) if _is_one_of(read, types)), value)


def _readings(text: str, types: frozenset[str]) -> Iterable[JsonValue]:
    if "boolean" in types and (flag := _FLAGS.get(text.strip().casefold())) is not None:
        yield flag
    if types & {"integer", "number"} and (number := _number(text)) is not None:
        yield int(number) if number.is_integer() and "integer" in types else number
    try:
        yield cast("JsonValue", json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return


def _number(text: str) -> float | None:
    """Return the finite number in a text, or None. Models write a number of seconds as `120`, `120.0` or `120s`."""
    try:
        value = float(text.strip().removesuffix("s").strip())
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _mismatch(parameter: Parameter, value: JsonValue) -> str:
    types = json_types(parameter.schema)
    shown = as_text(value)[:_SHOWN]
    if not _is_one_of(value, types):
        wanted = " or ".join(_WORDS.get(one, f"a JSON {one}") for one in sorted(types - {"null"}))
        return f"{parameter.name!r} must be {wanted}, not {shown!r}"
    values = parameter.schema.get("enum")
    if isinstance(values, list) and value not in values:
        return f"{parameter.name!r} must be one of {', '.join(map(as_text, values))}, not {shown!r}"
    return ""


def json_types(schema: _Schema) -> frozenset[str]:
    """Return the JSON types that a schema allows. If the schema names no type, return all types."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return frozenset({kind})
    if isinstance(kind, list):
        return frozenset(one for one in kind if isinstance(one, str))
    choices = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(choices, list):
        return frozenset[str]().union(*(json_types(one) for one in choices if isinstance(one, dict)))
    values = schema.get("enum")
    if isinstance(values, list):
        return frozenset(map(_type_of, values))
    return _EVERY_TYPE


def _type_of(value: JsonValue) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case None:
            return "null"


def _is_one_of(value: JsonValue, types: frozenset[str]) -> bool:
    kind = _type_of(value)
    return kind in types or (kind == "integer" and "number" in types)


def _taken(spec: ToolSpec) -> str:
    return ", ".join(f"{one.name}{'' if one.required else ' (optional)'}" for one in spec.parameters)
