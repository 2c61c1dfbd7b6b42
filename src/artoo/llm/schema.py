"""JSON schemas of contracts as model servers want them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import cast

from pydantic import BaseModel

Schema = dict[str, object]

_NOT_FOR_MODELS = frozenset({"title", "default", "discriminator", "examples"})
_NAMED = ("properties", "$defs", "patternProperties")
"""Below these stand schemas by names of the contract's own, which may be those of keywords."""
_TYPED = frozenset({"type", "anyOf", "allOf", "$ref", "enum", "const", "properties"})


@lru_cache(maxsize=256)
def schema_of(model: type[BaseModel]) -> Schema:
    """The schema of `model`, small: no titles, defaults or class docstrings; `oneOf` is `anyOf`, tags are required.

    Treat the result as read-only.
    """
    return _changed(model.model_json_schema(), _for_models)


def without_keys(schema: Schema, keys: frozenset[str]) -> Schema:
    """The schema without these keywords at any depth."""
    return _changed(schema, lambda part: {key: value for key, value in part.items() if key not in keys})


def is_strict(schema: Schema) -> bool:
    """True when every object in the schema is closed and requires all its properties, as strict mode demands."""
    return all(map(_is_closed, _every(schema)))


def strict_form(schema: Schema) -> Schema | None:
    """The schema with every property required, or None when it holds free-form objects or values of any type."""
    made = _changed(schema, _with_all_required)
    return made if is_strict(made) and all(_TYPED & part.keys() for part in _every(made)) else None


def _changed(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """A copy with `change` made to every schema in it, the inner ones first."""
    made: Schema = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            made[key] = {name: _changed_value(part, change) for name, part in cast(Schema, value).items()}
        else:
            made[key] = _changed_value(value, change)
    return change(made)


def _changed_value(value: object, change: Callable[[Schema], Schema]) -> object:
    if isinstance(value, dict):
        return _changed(cast(Schema, value), change)
    if isinstance(value, list):
        return [_changed_value(item, change) for item in cast(list[object], value)]
    return value


def _for_models(schema: Schema) -> Schema:
    """A tag that tells the members of a union apart has a default in Python, and must still be written."""
    docstring = {"description"} if schema.get("type") == "object" else set[str]()
    kept = {key: value for key, value in schema.items() if key not in _NOT_FOR_MODELS | docstring}
    made = {"anyOf" if key == "oneOf" else key: value for key, value in kept.items()}
    properties = cast(Schema, made.get("properties", {}))
    required = cast(list[str], made.get("required", []))
    tags = {name for name, part in properties.items() if isinstance(part, dict) and "const" in part}
    needed = [name for name in properties if name in required or name in tags]
    return {**made, "required": needed} if needed else made


def _with_all_required(schema: Schema) -> Schema:
    return {**schema, "required": list(cast(Schema, schema["properties"]))} if "properties" in schema else schema


def _is_closed(schema: Schema) -> bool:
    if schema.get("type") != "object" and "properties" not in schema:
        return True
    required, properties = cast(list[str], schema.get("required", [])), cast(Schema, schema.get("properties", {}))
    return schema.get("additionalProperties") is False and set(required) == properties.keys()


def _every(schema: Schema) -> Iterator[Schema]:
    """The schema and all in it."""
    yield schema
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            parts = list(cast(Schema, value).values())
        elif key in ("anyOf", "allOf", "prefixItems") and isinstance(value, list):
            parts = cast(list[object], value)
        else:
            parts = [value] if key == "items" else []
        for part in parts:
            if isinstance(part, dict):
                yield from _every(cast(Schema, part))
