"""Find and decode JSON objects in a model's text, tolerant of trailing commas and Python literals.

The decoder does not guess. The functions are pure.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from artoo.contracts.text import well_formed_value

_MOST_OBJECTS = 64
_LOOKS_LIKE_OBJECT = re.compile(r"\{\s*[\"'}]")
_MARK = re.compile(r"""["'{}\[\]]""")
_STRING_REST = {'"': re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL), "'": re.compile(r"(?:[^'\\]|\\.)*'", re.DOTALL)}
_STRING_OR_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_LONGEST_LITERAL = 20_000
# The maximum depth of nesting. No contract has ten levels, and later code may process a value recursively.
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class FoundJson:
    """One object in a text. It has its position, and the decoded value or the reason why it could not be
    decoded."""

    start: int
    end: int
    value: dict[str, object] | None
    problem: str = ""


def read_leniently(raw: bytes) -> object:
    """Decode JSON that a strict parser refuses. Return None if it is no JSON.

    These are accepted: invalid UTF-8, half an emoji (if an answer was interrupted in the middle of one), control
    characters, a byte order mark, and NaN.
    """
    try:
        return well_formed_value(json.loads(raw.decode("utf-8-sig", "replace"), strict=False))
    except (ValueError, RecursionError):
        return None


def objects_in(text: str) -> list[FoundJson]:
    """Return the outermost objects in order. If an object is not closed, it is the last one."""
    found: list[FoundJson] = []
    position = 0
    while len(found) < _MOST_OBJECTS:
        match = _LOOKS_LIKE_OBJECT.search(text, position)
        if match is None:
            break
        start = match.start()
        end = _end_of(text, start)
        if end is None:
            found.append(FoundJson(start, len(text), None, "the JSON object is cut off: it never closes"))
            break
        found.append(_decode(text, start, end))
        position = end
    return found


def _end_of(text: str, start: int) -> int | None:
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):  # a number with very many digits raises another error than JSONDecodeError
        return _closing_brace(text, start)
    return end


def _closing_brace(text: str, start: int) -> int | None:
    depth, position = 0, start
    while (mark := _MARK.search(text, position)) is not None:
        symbol, position = mark.group(), mark.end()
        if symbol in _STRING_REST:
            rest = _STRING_REST[symbol].match(text, position)
            if rest is None:
                return None
            position = rest.end()
            continue
        depth += 1 if symbol in "{[" else -1
        if depth == 0:
            return position
    return None


def _decode(text: str, start: int, end: int) -> FoundJson:
    raw = text[start:end]
    problem = ""
    for candidate in (raw, _STRING_OR_TRAILING_COMMA.sub(lambda match: match.group(1) or "", raw)):
        try:
            value = usable(json.loads(candidate, strict=False))
        except json.JSONDecodeError as error:
            problem = problem or f"no valid JSON: {error.msg} near {raw[max(0, error.pos - 20) : error.pos + 20]!r}"
        except ValueError:
            return FoundJson(start, end, None, "a number in the JSON has more digits than can be read")
        except RecursionError:
            return FoundJson(start, end, None, "the JSON is nested too deeply")
        else:
            return FoundJson(start, end, cast(dict[str, object], value))
    literal = _python_literal(raw)
    return FoundJson(start, end, literal, "" if literal is not None else problem)


def usable(value: object) -> object:
    """Return the value with all strings well-formed. Raises RecursionError below depth `_DEEPEST`."""
    if _is_deep(value):
        raise RecursionError
    return well_formed_value(value)


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def _python_literal(raw: str) -> dict[str, object] | None:
    """Decode a dict in Python's syntax (single quotes, True, False, None)."""
    if len(raw) > _LONGEST_LITERAL:
        return None
    try:
        value: object = ast.literal_eval(raw)
        # Only values are accepted that JSON can express. Encoding the value refuses bytes, sets, and tuples as
        # keys.
        again: object = usable(json.loads(json.dumps(value, allow_nan=False)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return cast(dict[str, object], again) if isinstance(again, dict) else None
