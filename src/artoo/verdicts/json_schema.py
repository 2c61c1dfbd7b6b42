"""Validate a value by JSON Schema, with the time for a pattern, without remote references.

This module is imported only when a schema is applied, because jsonschema loads slowly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import regex
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend  # pyright: ignore[reportUnknownVariableType] - its stub is partly untyped
from referencing import Registry

PATTERN_SECONDS = 0.5


class PatternProblem(Exception):
    """Raised for a `pattern` of the schema that is invalid or took too long.

    checks.py turns this error into an undecided check."""


def _pattern(_: object, pattern: str, instance: object, __: Mapping[str, object]) -> Iterator[ValidationError]:
    if not isinstance(instance, str):
        return
    try:
        found = regex.search(pattern, instance, timeout=PATTERN_SECONDS, concurrent=True)
    except (regex.error, TimeoutError) as problem:
        raise PatternProblem(f"pattern {pattern!r}: {problem}") from problem
    if found is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(*_: object) -> Iterator[ValidationError]:
    raise PatternProblem("`patternProperties` is not supported in a check")


_BOUNDED = cast(Any, extend(Draft202012Validator, {"pattern": _pattern, "patternProperties": _pattern_properties}))
_EMPTY: Registry[Any] = Registry()


def validate(value: object, schema: Mapping[str, object]) -> None:
    """Validate a value by a schema. Raises SchemaError, ValidationError, Unresolvable or PatternProblem."""
    Draft202012Validator.check_schema(schema)
    _BOUNDED(schema, registry=_EMPTY).validate(value)
