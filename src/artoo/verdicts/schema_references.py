"""Move a JSON Schema into another one, so that its references stay valid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

_REFERENCES = frozenset({"$ref", "$dynamicRef"})
# Keywords whose values are not schemas, even if they look like schemas.
_VALUES = frozenset({"const", "enum", "default", "examples"})
# Keywords whose values map names to schemas. Such a name may be the same as a keyword.
_BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})


def moved(schema: Mapping[str, object], place: str) -> dict[str, object]:
    """Return the schema in a form that can be inserted at `place` (for example `#/properties/value`). Its `$defs`
    are moved to the root.

    JSON pointers (RFC 6901) that start at the schema's root get the prefix `place`. Anchors (`#Name`) and other
    references are unchanged, because they mean the same at any place.
    """
    return {name: _moved_part(name, part, place) for name, part in schema.items()}


def _moved_part(keyword: str, part: object, place: str) -> object:
    if keyword in _VALUES:
        return part
    if keyword in _REFERENCES and isinstance(part, str):
        inside = part == "#" or (part.startswith("#/") and not part.startswith("#/$defs/"))
        return place + part[1:] if inside else part
    if keyword in _BY_NAME and isinstance(part, dict):
        return {name: _moved(one, place) for name, one in cast("dict[str, object]", part).items()}
    return _moved(part, place)


def _moved(part: object, place: str) -> object:
    if isinstance(part, dict):
        return moved(cast("dict[str, object]", part), place)
    if isinstance(part, list):
        return [_moved(one, place) for one in cast("list[object]", part)]
    return part
