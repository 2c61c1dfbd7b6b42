"""JSON schemas of contracts as model servers want them."""

from __future__ import annotations

from functools import lru_cache
from typing import cast

from pydantic import BaseModel

Schema = dict[str, object]

_NOT_FOR_MODELS = frozenset({"title", "default", "discriminator", "examples"})
_NAMED = ("properties", "$defs", "patternProperties")


@lru_cache(maxsize=256)
def schema_of(model: type[BaseModel]) -> Schema:
    """The schema of `model`, small: no titles, defaults or class docstrings; `oneOf` is `anyOf`, tags are required.

    Treat the result as read-only.
    """
    return _clean(model.model_json_schema())


def _clean(schema: Schema) -> Schema:
    cleaned: Schema = {}
    for key, value in schema.items():
        if key in _NOT_FOR_MODELS or (key == "description" and schema.get("type") == "object"):
            continue
        name = "anyOf" if key == "oneOf" else key
        if key in _NAMED and isinstance(value, dict):
            cleaned[name] = {k: _clean_value(v) for k, v in cast(Schema, value).items()}
        else:
            cleaned[name] = _clean_value(value)
    _require_constants(cleaned)
    return cleaned


def _require_constants(schema: Schema) -> None:
    """A tag that tells the members of a union apart has a default in Python, and must still be written."""
    properties = cast(Schema, schema.get("properties", {}))
    required = cast(list[str], schema.get("required", []))
    tags = {name for name, part in properties.items() if isinstance(part, dict) and "const" in part}
    needed = [name for name in properties if name in required or name in tags]
    if needed:
        schema["required"] = needed


def _clean_value(value: object) -> object:
    if isinstance(value, dict):
        return _clean(cast(Schema, value))
    if isinstance(value, list):
        return [_clean_value(item) for item in cast(list[object], value)]
    return value


def is_strict(schema: Schema) -> bool:
    """True when every object in the schema is closed and requires all its properties, as strict mode demands."""
    if schema.get("type") == "object" or "properties" in schema:
        properties = cast(Schema, schema.get("properties", {}))
        if schema.get("additionalProperties") is not False or set(properties) != set(
            cast(list[str], schema.get("required", []))
        ):
            return False
    return all(is_strict(part) for part in _parts(schema))


def strict_form(schema: Schema) -> Schema | None:
    """The schema with every property required, or None when it holds free-form objects or values of any type."""
    made = _require_all(schema)
    return made if is_strict(made) and not _has_open_parts(made) else None


def _require_all(schema: Schema) -> Schema:
    made = {
        key: (
            {name: _require_all_value(part) for name, part in cast(Schema, value).items()}
            if key in _NAMED and isinstance(value, dict)
            else _require_all_value(value)
        )
        for key, value in schema.items()
    }
    if "properties" in made:
        made["required"] = list(cast(Schema, made["properties"]))
    return made


def _require_all_value(value: object) -> object:
    if isinstance(value, dict):
        return _require_all(cast(Schema, value))
    if isinstance(value, list):
        return [_require_all_value(item) for item in cast(list[object], value)]
    return value


def _has_open_parts(schema: Schema) -> bool:
    known = {"type", "anyOf", "allOf", "$ref", "enum", "const", "properties"}
    return not known & set(schema) or any(_has_open_parts(part) for part in _parts(schema))


def _parts(schema: Schema) -> list[Schema]:
    parts: list[Schema] = []
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            parts += [cast(Schema, part) for part in cast(Schema, value).values() if isinstance(part, dict)]
        elif key in ("anyOf", "allOf", "prefixItems") and isinstance(value, list):
            parts += [cast(Schema, part) for part in cast(list[object], value) if isinstance(part, dict)]
        elif key == "items" and isinstance(value, dict):
            parts.append(cast(Schema, value))
    return parts
