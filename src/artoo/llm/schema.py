"""JSON schemas of contracts without the keywords that model servers do not need."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import cast

from pydantic import BaseModel

Schema = dict[str, object]

_NOT_FOR_MODELS = frozenset({"title", "default", "discriminator", "examples"})
# Keys whose values map names to schemas. These names belong to the contract and may be the same as keywords.
_NAMED = ("properties", "$defs", "patternProperties")


@lru_cache(maxsize=256)
def schema_of(model: type[BaseModel]) -> Schema:
    """Return the schema of `model` without titles, defaults and class docstrings. The tags of unions are required
    in it.

    The caller must not change the result.
    """
    return _changed(model.model_json_schema(), _for_models)


def without_keys(schema: Schema, keys: frozenset[str]) -> Schema:
    """Return the schema without these keywords at any depth."""
    return _changed(schema, lambda part: {key: value for key, value in part.items() if key not in keys})


def _changed(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Return a copy with `change` applied to every schema in it. The inner schemas are changed first."""
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
    """Remove the keys that models do not need. The tag of a union has a default in Python, but a model must write
    it."""
    docstring = {"description"} if schema.get("type") == "object" else set[str]()
    kept = {key: value for key, value in schema.items() if key not in _NOT_FOR_MODELS | docstring}
    made = {"anyOf" if key == "oneOf" else key: value for key, value in kept.items()}
    properties = cast(Schema, made.get("properties", {}))
    required = cast(list[str], made.get("required", []))
    tags = {name for name, part in properties.items() if isinstance(part, dict) and "const" in part}
    needed = [name for name in properties if name in required or name in tags]
    return {**made, "required": needed} if needed else made
