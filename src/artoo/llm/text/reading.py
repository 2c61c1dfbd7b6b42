"""Parse a model's text into a valid value of a schema, or into a problem to repair.

The functions are pure. Reference: SPEC section 9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError

from artoo.llm.text.fences import Fence, fences_in, wrapping
from artoo.llm.text.jsontext import FoundJson, objects_in
from artoo.llm.text.thoughts import split_thoughts

T = TypeVar("T", bound=BaseModel)

# Number of characters of an answer that are parsed.
LONGEST_ANSWER = 400_000

_OWN_FENCE_END = re.compile(r"^\s*(?:`{3,}|~{3,})[ \t]*$", re.MULTILINE)
_MAY_BE_FENCE = re.compile(r"```|~~~")
_JSON_INFO = frozenset({"json", "jsonc", "json5"})
_WORDS_INFO = frozenset({"", "text", "txt", "markdown", "md"})
_WRAPPERS = ("answer", "arguments")
_MOST_PROBLEMS = 4
_NO_LIST = frozenset({"tuple_type", "list_type"})
_DIGITS = re.compile(r"\d{1,9}")
# Number of passes of correction. One correction may reveal the next: a value that became a list item may be a text
# with a number.
_MOST_SLIPS = 3


class Unreadable(Exception):
    """Raised if a text contains no valid answer. `problem` names the fields in a few words, for the repair and for
    users."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


def read_answer(text: str, schema: type[T], *, body_field: str | None = None, cut: bool = False) -> T:
    """Return the first valid value of `schema` in a text.

    These are accepted: thoughts in tags (also unclosed), fences, prose around the answer, several objects, trailing
    commas, Python literals, an object wrapped in one with the name of the contract, unknown fields next to known
    ones, and null for a field with a default. `body_field`: see `artoo.ports.model.Question`. `cut`: true if the
    server stopped at the token limit. Raises Unreadable.
    """
    if body_field is None or not _MAY_BE_FENCE.search(text):
        value = _read_clean(text, schema)
        if value is not None and body_field not in value.model_fields_set:
            return value
    spoken, thought, _ = split_thoughts(text[:LONGEST_ANSWER])
    if not spoken.strip() and (cut or not thought.strip()):
        raise Unreadable("the answer is empty" if not thought.strip() else "the answer ended while still thinking")
    # A thought that was not closed may still contain the answer, as its last object.
    source = spoken if spoken.strip() else thought
    if body_field is not None:
        return _read_with_body(source, schema, body_field, cut=cut)
    objects = objects_in(source)
    return _first_valid(objects if spoken.strip() else objects[::-1], schema)


def _read_clean(text: str, schema: type[T]) -> T | None:
    try:
        return schema.model_validate_json(text)
    except ValidationError:
        return None


def _first_valid(objects: list[FoundJson], schema: type[T]) -> T:
    problem = "the answer holds no JSON object"
    for number, found in enumerate(objects):
        try:
            return _valid(found, schema)
        except Unreadable as error:
            if number == 0:
                problem = error.problem
    raise Unreadable(problem)


def _valid(found: FoundJson, schema: type[T]) -> T:
    if found.value is None:
        raise Unreadable(found.problem)
    return _as_value(found.value, schema)


def _as_value(given: dict[str, object], schema: type[T]) -> T:
    try:
        return schema.model_validate(given)
    except ValidationError as error:
        problem = error
    if given.keys() == {"name", "arguments"}:  # a native call
        given = {"arguments": given["arguments"]}
    inner = next(iter(given.values())) if len(given) == 1 else None
    if isinstance(inner, dict) and next(iter(given)).lower() in (schema.__name__.lower(), *_WRAPPERS):
        return _as_value(cast(dict[str, object], inner), schema)
    for _ in range(_MOST_SLIPS):
        lenient = _without_slips(given, problem)
        if not lenient:
            break
        try:
            return schema.model_validate(lenient)
        except ValidationError as error:
            given, problem = lenient, error
    raise Unreadable(describe(problem)) from problem


def describe(error: ValidationError) -> str:
    """Describe the first few problems as `field: problem`."""
    problems = error.errors(include_url=False, include_context=False)
    lines = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'the object'}: {problem['msg']}"
        for problem in problems[:_MOST_PROBLEMS]
    ]
    more = len(problems) - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")


def _without_slips(given: dict[str, object], error: ValidationError) -> dict[str, object] | None:
    """Return a corrected copy, or None if there is a problem that cannot be corrected. Unknown fields and nulls are
    removed. A single value becomes a list if a list is needed. A text that contains exactly one number (`call 1`)
    becomes this number.
    """
    copy = deepcopy(given)
    for problem in error.errors(include_url=False, include_context=False):
        kind, value, place = problem["type"], problem["input"], _place(copy, problem["loc"])
        if place is None:
            return None
        holder, key = place
        if kind in _NO_LIST and isinstance(value, int | str):
            holder[key] = [value]
        elif kind == "int_parsing" and isinstance(value, str) and len(runs := _DIGITS.findall(value)) == 1:
            holder[key] = int(runs[0])
        elif isinstance(key, str) and (kind == "extra_forbidden" or value is None):
            del holder[key]
        else:
            return None
    return copy


def _place(value: object, path: tuple[int | str, ...]) -> tuple[dict[int | str, object], int | str] | None:
    """Return the dict or list that contains the value with a problem, and its key there. Return None if there is no
    such place.

    The path in the error also contains names of union members, which are not in the data.
    """
    place = None
    for number, part in enumerate(path, 1):
        holder = cast("dict[int | str, object]", value)
        if (isinstance(value, dict) and part in holder) or (isinstance(value, list) and isinstance(part, int)):
            place, value = (holder, part), holder[part]
        elif number == len(path) or not isinstance(part, str):
            return None
    return place


def _read_with_body(text: str, schema: type[T], body_field: str, *, cut: bool) -> T:
    """Return the value of a JSON header with its body. The body is a text if the schema has `body_is_words`,
    otherwise a program.

    Without a header, the first code block is the body. If the body is a text, it may have no block.
    """
    is_words = bool(getattr(schema, "body_is_words", False))
    fences = fences_in(text)
    headers = objects_in(without_code(text, fences))
    code = next(filter(holds_code, fences), None)
    if not headers and code is not None and (code.closed or not cut):
        return _as_value({body_field: code.text}, schema)
    problem = ""
    for found in headers or objects_in(text):
        fence = words_of(text, found, fences) if is_words else body_of(text, found, fences)
        if found.value is None:
            problem = problem or found.problem
        elif fence is not None and not fence.closed and cut:
            raise Unreadable(f"the fenced block for {body_field} is cut off: it never closes")
        else:
            inside = found.value.get(body_field)
            has_body = isinstance(inside, str) and bool(inside.strip())
            joined = found.value if fence is None or has_body else {**found.value, body_field: fence.text}
            try:
                return _as_value(joined, schema)
            except Unreadable as error:
                problem = problem or error.problem
    if is_words and not (problem or fences or cut):
        return _as_value({body_field: text.strip()}, schema)
    raise Unreadable(problem or "the answer has none of the forms that were asked for")


def without_code(text: str, fences: Iterable[Fence]) -> str:
    """Return the text with spaces in place of its code blocks, because braces in them are no headers."""
    return blank(text, [fence for fence in fences if holds_code(fence)])


def blank(text: str, parts: Sequence[FoundJson | Fence]) -> str:
    """Return the text with spaces in place of these parts, so that its length stays the same."""
    for part in parts:
        text = text[: part.start] + " " * (part.end - part.start) + text[part.end :]
    return text


def holds_code(fence: Fence) -> bool:
    """Return whether a block contains something else than JSON."""
    return not (fence.info.lower() in _JSON_INFO or (not fence.info and fence.text.lstrip().startswith("{")))


def is_inside(place: int, fences: Sequence[Fence]) -> bool:
    """Return whether a position in a text is inside of one of its blocks."""
    return any(fence.start < place < fence.end for fence in fences)


def body_of(text: str, header: FoundJson, fences: list[Fence]) -> Fence | None:
    """Return the first block after a header. If there is none, return the last one before it, but never the block
    that contains the header."""
    after = fences_in(_behind(text, header, fences))
    if after:
        return after[0]
    before = [fence for fence in fences if fence.end <= header.start]
    return before[-1] if before else None


def words_of(text: str, header: FoundJson, fences: list[Fence]) -> Fence | None:
    """Return the text that belongs to a header. It is what a block around the text contains, or all text after the
    header.

    The text may contain code blocks.
    """
    rest = _behind(text, header, fences)
    fence = wrapping(rest)
    if fence is not None and (fence.info.lower() in _WORDS_INFO or not rest[fence.end :].strip()):
        return fence
    if rest.strip():
        return Fence(0, len(rest), "", rest.strip(), closed=False)
    return body_of(text, header, fences)


def _behind(text: str, header: FoundJson, fences: list[Fence]) -> str:
    """Return the text after a header. If a fence is around the header, its closing line is left out."""
    rest = text[header.end :]
    return _OWN_FENCE_END.sub("", rest, count=1) if is_inside(header.start, fences) else rest
