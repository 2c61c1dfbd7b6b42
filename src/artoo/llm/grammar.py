"""JSON schema → GBNF, llama.cpp's grammar language, for the subset that our contracts need.

Differences from llama.cpp's own converter, each for small models: fields come in the schema's order and only
there, between tokens stands at most one space (a model that starts to indent can go on for ever), and strings have
no length limit (a cut string spills its rest into the next field).
"""

from __future__ import annotations

import re
from typing import TypeGuard, cast

import orjson

from artoo.llm.schema import Schema

_BASE = r"""
ws ::= " "?
char ::= [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F])
string ::= "\"" char* "\""
integer ::= "-"? natural
natural ::= "0" | [1-9] [0-9]{0,15}
number ::= integer ("." [0-9]{1,20})? ([eE] [-+]? [0-9]{1,3})?
boolean ::= "true" | "false"
value ::= string | number | boolean | "null" | any-object | any-array
any-object ::= "{" ws (any-pair ("," ws any-pair)*)? "}"
any-pair ::= string ":" ws value
any-array ::= "[" ws (value ("," ws value)*)? "]"
"""

_MOST_REPEATED = 64
_ATOM = re.compile(r'[a-z0-9-]+|"(?:[^"\\]|\\.)*"')


def grammar_of(schema: Schema) -> str:
    """A grammar whose language is the JSON objects of `schema`, in field order.

    Bounds and patterns that GBNF cannot say (string lengths, regular expressions, most ranges) are left to
    validation, and so is all that this subset does not know: any value may stand there.
    """
    writer = _Writer(schema)
    header = writer.part(schema, "header")
    return "\n".join([f"root ::= {header}", *writer.rules]) + _BASE


class _Writer:
    """Collects rules. `part` returns what to write where a schema's values may stand: a rule's name or literal."""

    def __init__(self, whole: Schema) -> None:
        self._whole = whole
        self._references: dict[str, str] = {}
        self._names = 0
        self.rules: list[str] = []

    def part(self, schema: object, hint: str) -> str:
        expression = self._expression(schema, hint)
        if _ATOM.fullmatch(expression):
            return expression
        name = self._new_name(hint)
        self.rules.append(f"{name} ::= {expression}")
        return name

    def _new_name(self, hint: str) -> str:
        self._names += 1
        return f"{re.sub('[^a-z0-9]+', '-', hint.lower()).strip('-') or 'part'}-{self._names}"

    def _expression(self, schema: object, hint: str) -> str:
        if not _is_schema(schema):
            return "value"  # true and false are schemas too
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]))
        if "const" in schema:
            return _literal(schema["const"])
        if "enum" in schema:
            return _either([_literal(value) for value in cast(list[object], schema["enum"])])
        if "anyOf" in schema:
            return _either([self.part(part, hint) for part in cast(list[Schema], schema["anyOf"])])
        kind = schema.get("type")
        if isinstance(kind, list):
            return _either([self._expression({**schema, "type": one}, hint) for one in cast(list[str], kind)])
        return self._typed(str(kind), schema, hint)

    def _reference(self, reference: str) -> str:
        """A rule for what stands at a JSON pointer into the whole schema (`#`, `#/$defs/Name`)."""
        if reference not in self._references:
            target: object = self._whole
            for step in reference.split("/")[1:]:
                target = target.get(step) if _is_schema(target) else None
            name = reference.rsplit("/", 1)[-1]
            # Named before it is written, so that a schema that contains itself ends.
            rule = self._references[reference] = self._new_name(name)
            known = target if reference.startswith("#") else None
            self.rules.append(f"{rule} ::= {self._expression(known, name)}")
        return self._references[reference]

    def _typed(self, kind: str, schema: Schema, hint: str) -> str:
        match kind:
            case "object":
                return self._object(schema, hint)
            case "array":
                return self._array(schema, hint)
            case "string" | "boolean" | "number":
                return kind
            case "integer":
                return _integer(schema)
            case "null":
                return '"null"'
            case _:
                return "value"

    def _object(self, schema: Schema, hint: str) -> str:
        properties = cast(dict[str, Schema], schema.get("properties", {}))
        if not properties:
            return self._map(schema, hint)
        required = frozenset(cast(list[str], schema.get("required", [])))
        pairs = [
            (f'{_literal(name)} ":" ws {self.part(part, f"{hint}-{name}")}', name in required)
            for name, part in properties.items()
        ]
        return f'"{{" ws {_first_pair(pairs)} "}}"'

    def _map(self, schema: Schema, hint: str) -> str:
        values = schema.get("additionalProperties")
        if values is False:
            return '"{" ws "}"'
        if not isinstance(values, dict):
            return "any-object"
        pair = f'string ":" ws {self.part(cast(Schema, values), f"{hint}-value")}'
        return f'"{{" ws ({pair} ("," ws {pair})*)? "}}"'

    def _array(self, schema: Schema, hint: str) -> str:
        if "prefixItems" in schema:
            parts = cast(list[Schema], schema["prefixItems"])
            return '"[" ws ' + ' "," ws '.join(self.part(part, hint) for part in parts) + ' "]"'
        least = cast(int, schema.get("minItems", 0))
        most = cast(int | None, schema.get("maxItems"))
        if most == 0:
            return '"[" ws "]"'
        item = self.part(schema.get("items"), f"{hint}-item")
        more = _repeat(f'("," ws {item})', max(0, least - 1), None if most is None else most - 1)
        items = f"{item} {more}"
        return f'"[" ws {items} "]"' if least else f'"[" ws ({items})? "]"'


def _is_schema(value: object) -> TypeGuard[Schema]:
    return isinstance(value, dict)


def _first_pair(pairs: list[tuple[str, bool]]) -> str:
    """Fields in order with commas between those that are there; nothing was written yet."""
    pair, required = pairs[0]
    rest = "".join(f' "," ws {later}' if is_required else f' ("," ws {later})?' for later, is_required in pairs[1:])
    if required:
        return pair + rest
    return f"({pair}{rest} | {_first_pair(pairs[1:])})" if len(pairs) > 1 else f"({pair})?"


def _repeat(item: str, least: int, most: int | None) -> str:
    if most is not None and most <= _MOST_REPEATED:
        return f"{item}{{{least},{most}}}"
    return f"{item}{{{least},}}" if least else f"{item}*"


def _integer(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if not isinstance(least, int) or least < 0:
        return "integer"
    if isinstance(most, int) and most - least < 20:
        return _either([f'"{number}"' for number in range(least, most + 1)])
    return "natural"


def _either(parts: list[str]) -> str:
    unique = list(dict.fromkeys(parts)) or ["value"]
    return unique[0] if len(unique) == 1 else f"({' | '.join(unique)})"


def _literal(value: object) -> str:
    """JSON text of a constant, as a GBNF literal."""
    text = orjson.dumps(value).decode()
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
