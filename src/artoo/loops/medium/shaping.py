"""Convert a delivered answer to JSON of the caller's schema, with the limit of its output.

    the output is already such a value ──► it is used unchanged, without a call
    otherwise ──► one call (repeated once if the value does not fit) ──► every leaf is searched in the output

The result names the values that the model added, and then counts as unverified.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import cast

from pydantic import JsonValue, field_validator

from artoo.contracts.base import Contract
from artoo.contracts.criteria import Assurance, weakest
from artoo.contracts.envelope import Envelope
from artoo.contracts.errors import BudgetExhausted, IdentityRefused, ModelError
from artoo.contracts.findings import OwnValues, Unformed
from artoo.contracts.solution import FinalResult
from artoo.evidence.grounding import Seen
from artoo.evidence.numerals import numbers_in
from artoo.evidence.tokens import folded
from artoo.loops.asking import Asker
from artoo.prompts.segments import Segment
from artoo.verdicts.checks import misfit
from artoo.verdicts.schema_references import moved

Schema = Mapping[str, object]

_MOST_TOKENS = 2_048
# Number of characters of the output that the model is shown.
_MOST_OUTPUT = 24_000
_MOST_NAMED = 8
# the name under which the schema for the model contains the caller's schema, so that its references are moved there
_VALUE = "#/properties/value"


class StructuredResult(Contract):
    """The answer of the model call. In the schema for the model, the caller's schema takes the place of the schema
    of `value`."""

    value: JsonValue


async def formed(asker: Asker, request: str, result: FinalResult, schema: Schema, cause: Envelope) -> FinalResult:
    """Return the result with its output as a value of the schema. If there is no such value, return the result with
    the reason.

    The paths of fields whose values are not in the output (for example `$.age`) are added to the result as a fact.
    """
    output = result.output
    with suppress(ValueError, RecursionError):
        given = cast(JsonValue, json.loads(output))
        if misfit(given, schema) is None:
            return result.model_copy(update={"value": given})
    segments = {
        Segment.TASK: request,
        Segment.EVIDENCE: output[:_MOST_OUTPUT],
        Segment.CLOSING: f"JSON schema of value:\n{json.dumps(schema, ensure_ascii=False)}",
    }
    try:
        answer = await asker.ask(
            "StructuredResult", _contract(schema), segments, cause=cause, max_tokens=_MOST_TOKENS
        )
    except (ModelError, BudgetExhausted, IdentityRefused) as error:
        facts = (*result.facts, Unformed(problem=str(error)))
        return result.model_copy(update={"facts": facts, "assurance": Assurance.UNVERIFIED})
    own = tuple(_own_words(answer.value, schema, Seen((output, request))))
    facts = (*result.facts, OwnValues(places=own[:_MOST_NAMED])) if own else result.facts
    best = weakest((result.assurance, Assurance.UNVERIFIED if own else Assurance.JUDGED))
    return result.model_copy(update={"value": answer.value, "facts": facts, "assurance": best})


def _contract(schema: Schema) -> type[StructuredResult]:
    """Create a variant of StructuredResult whose value has this schema. It is used for the server and for the
    validation."""

    class Formed(StructuredResult):
        @field_validator("value")
        @classmethod
        def fits(cls, value: JsonValue) -> JsonValue:
            problem = misfit(value, schema)
            if problem is not None:
                raise ValueError(problem)
            return value

        @classmethod
        def model_json_schema(cls, *_: object, **__: object) -> dict[str, object]:
            value = moved(schema, _VALUE)
            named = value.pop("$defs", {})
            properties = {"type": "object", "properties": {"value": value}, "required": ["value"]}
            return {**properties, "additionalProperties": False, "$defs": named}

    return Formed


def _own_words(value: JsonValue, schema: Schema, seen: Seen, path: str = "$") -> Iterator[str]:
    """Yield the paths of texts and numbers that do not occur in the output. A boolean, or a word that the schema
    itself offers (`enum`), is a choice and cannot occur in the output.
    """
    match value:
        case dict():
            for name, part in value.items():
                yield from _own_words(part, schema, seen, f"{path}.{name}")
        case list():
            for number, part in enumerate(value):
                yield from _own_words(part, schema, seen, f"{path}[{number}]")
        case str() if value.strip() and not _is_choice(value, schema) and folded(value) not in seen.folded:
            yield path
        case int() | float() if not isinstance(value, bool):
            if not all(seen.numbers.has(number) for number in numbers_in(f"{abs(value)}")):
                yield path
        case _:
            return


def _is_choice(word: str, schema: object) -> bool:
    """Return whether the schema itself offers this word as a choice."""
    if isinstance(schema, dict):
        named = cast("dict[str, object]", schema)
        chosen = named.get("enum")
        if named.get("const") == word or (isinstance(chosen, list) and word in cast("list[object]", chosen)):
            return True
        return any(_is_choice(word, part) for part in named.values())
    return isinstance(schema, list) and any(_is_choice(word, part) for part in cast("list[object]", schema))
