"""From a model's text to a valid value, or to a problem that a model can mend (pure; SPEC section 9)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError

from artoo.llm.text.call_forms import formed_calls
from artoo.llm.text.calls import as_call
from artoo.llm.text.fences import Fence, fences_in, wrapping
from artoo.llm.text.jsontext import Found, objects_in
from artoo.llm.text.thoughts import split_thoughts
from artoo.ports.tools import ToolSpec

T = TypeVar("T", bound=BaseModel)

LONGEST_ANSWER = 400_000
"""Characters of an answer that are looked at."""

_OWN_FENCE_END = re.compile(r"^\s*(?:`{3,}|~{3,})[ \t]*$", re.MULTILINE)
_MAY_BE_FENCE = re.compile(r"```|~~~")
_JSON_INFO = frozenset({"json", "jsonc", "json5"})
_WORDS_INFO = frozenset({"", "text", "txt", "markdown", "md"})
_NATIVE_CALL = {"name", "arguments"}
_STEP_KEYS = frozenset({"tool", "function", "arguments"})
_MOST_PROBLEMS = 4
_NO_LIST = frozenset({"tuple_type", "list_type"})
_DIGITS = re.compile(r"\d{1,9}")
_MOST_SLIPS = 3
"""Passes over what is wrong: a list that was none may hold a text that is a number."""


class Unreadable(Exception):
    """The text holds no valid answer. `problem` is short and names the fields, for the repair and for people."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


def read_answer(text: str, schema: type[T], *, body_field: str | None = None, cut: bool = False) -> T:
    """The first valid value of `schema` in `text`.

    Read through: thoughts in tags (also unclosed), fences, prose around, several objects, trailing commas, Python
    literals, an object wrapped in one named like the contract, unknown fields beside known ones, null for fields
    with a default. `body_field`: see `artoo.ports.model.Question`. `cut`: the server stopped at the token limit.
    Raises Unreadable.
    """
    is_call = getattr(schema, "specs", None) is not None  # whose arguments may have other names
    if not is_call and (body_field is None or not _MAY_BE_FENCE.search(text)):
        value = _read_clean(text, schema)
        if value is not None and body_field not in value.model_fields_set:
            return value
    spoken, thought, _ = split_thoughts(text[:LONGEST_ANSWER])
    if not spoken.strip() and (cut or is_call or not thought.strip()):
        raise Unreadable("the answer is empty" if not thought.strip() else "the answer ended while still thinking")
    # A thought that never closed may hold the answer after all, as its last object; a step in it is never taken.
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


def _first_valid(objects: list[Found], schema: type[T]) -> T:
    problem = "the answer holds no JSON object"
    for number, found in enumerate(objects):
        try:
            return _validated(found, schema)
        except Unreadable as error:
            if number == 0:
                problem = error.problem
    raise Unreadable(problem)


def _validated(found: Found, schema: type[T]) -> T:
    if found.value is None:
        raise Unreadable(found.problem)
    return _as_value(found.value, schema)


def _as_value(given: dict[str, object], schema: type[T]) -> T:
    return _valid(_shaped(given, schema), schema)


def _valid(given: dict[str, object], schema: type[T]) -> T:
    try:
        return schema.model_validate(given)
    except ValidationError as error:
        problem = error
    if given.keys() == _NATIVE_CALL:
        given = {"arguments": given["arguments"]}
    inner = next(iter(given.values())) if len(given) == 1 else None
    if isinstance(inner, dict) and next(iter(given)).lower() in (schema.__name__.lower(), "answer", "arguments"):
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


def _shaped(given: dict[str, object], schema: type[BaseModel]) -> dict[str, object]:
    """A tool call in the form of the schema, if that is one: the type's `specs` are then the tools by name."""
    specs = cast(Mapping[str, ToolSpec] | None, getattr(schema, "specs", None))
    is_wrapped = len(given) == 1 and next(iter(given)).lower() in (schema.__name__.lower(), "answer")
    return given if specs is None or is_wrapped else as_call(given, specs, schema.model_fields)


def describe(error: ValidationError) -> str:
    """The first few problems as `field: what is wrong`."""
    problems = error.errors(include_url=False, include_context=False)
    lines = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'the object'}: {problem['msg']}"
        for problem in problems[:_MOST_PROBLEMS]
    ]
    more = len(problems) - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")


def _without_slips(given: dict[str, object], error: ValidationError) -> dict[str, object] | None:
    """A copy without unknown fields and nulls, with one value for a list as a list of it, and with the number for a
    text that holds one and no other (`call 1`), if these are all that is wrong and something known remains."""
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
    """Where a problem is: what holds the value (also a list), and under which key; None where nothing is there.

    The name of a member of a union is in the path and not in the data.
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
    fences = fences_in(text, _is_call(schema))
    headers = objects_in(_without_code(text, fences))
    if getattr(schema, "specs", None) is not None:
        formed = [each for each in formed_calls(text) if not _is_inside(each.start, fences)]
        if formed and (not headers or formed[0].start < headers[0].start):
            if formed[0].call is None:
                raise Unreadable("the tool call is not complete")
            calls = [Found(each.start, each.end, each.call) for each in formed if each.call is not None]
            text = _blank(text, calls)  # what stands in their arguments is no block and no header
            fences = fences_in(text, _is_call(schema))
            headers = sorted((*objects_in(_without_code(text, fences)), *calls), key=lambda each: each.start)
    if not headers:
        value = _salvaged(fences, schema, cut=cut)
        if value is not None:
            return _among(value, (), fences)
    problem = ""
    steps = [
        found if found.value is None else replace(found, value=_shaped(found.value, schema))
        for found in headers or objects_in(text)
    ]
    for number, found in enumerate(steps):
        words = _is_words(found, schema)
        until = next((each.start for each in steps[number + 1 :] if _is_step(each, found, schema)), len(text))
        fence = _words_of(text, found, fences, schema) if words else _body_of(text[:until], found, fences, schema)
        if found.value is None:
            problem = problem or found.problem
        elif fence is not None and not fence.closed and cut:
            raise Unreadable(f"the fenced block for {body_field} is cut off: it never closes")
        else:
            try:
                value = _valid(_joined(found.value, body_field, fence), schema)
            except Unreadable as error:
                problem = problem or error.problem
            else:
                return value if words else _among(value, steps[number:], fences)
    spoken = _spoken(text, schema) if not problem and not fences and not cut else None
    if spoken is not None:
        return spoken
    raise Unreadable(problem or "the answer has none of the forms that were asked for")


def _among(value: T, headers: Sequence[Found], fences: Sequence[Fence]) -> T:
    """The value, which is told how many more of its kind stood in the answer (`among(number)`), if it has that.

    It was the first of these headers, or the first block. A block behind a header belongs to it; one behind another
    block is a step of its own, if it can be one without a header.
    """
    told = cast(Callable[[int], T] | None, getattr(value, "among", None))
    if told is None:
        return value
    begun = headers[0].start if headers else 0
    blocks = (fence for fence in fences if fence.start >= begun and not _may_be_json(fence))
    parts = sorted((*headers, *blocks), key=lambda part: part.start)
    more = sum(_is_step(part, before, type(value)) for before, part in pairwise(parts))
    return told(more) if more else value


def _is_step(part: Found | Fence, before: Found | Fence, schema: type[BaseModel]) -> bool:
    try:
        if isinstance(part, Fence):
            return isinstance(before, Fence) and _from_block(part, schema) is not None
        _validated(part, schema)
    except Unreadable:
        return False
    return True


def _spoken(text: str, schema: type[T]) -> T | None:
    """Words alone, given to the type's `from_words(text)` when it has one."""
    read = cast(Callable[[str], object] | None, getattr(schema, "from_words", None))
    value = read(text.strip()) if read is not None else None
    return value if isinstance(value, schema) else None


def _without_code(text: str, fences: list[Fence]) -> str:
    """The text with its blocks of code blank: braces in them are no headers."""
    return _blank(text, [fence for fence in fences if not _may_be_json(fence)])


def _blank(text: str, parts: Sequence[Found | Fence]) -> str:
    """The text, as long as before, with spaces in the place of these parts."""
    for part in parts:
        text = text[: part.start] + " " * (part.end - part.start) + text[part.end :]
    return text


def _may_be_json(fence: Fence) -> bool:
    return fence.info.lower() in _JSON_INFO or (not fence.info and fence.text.lstrip().startswith("{"))


def _is_call(schema: type[BaseModel]) -> Callable[[str], bool]:
    """Whether a text begins with a further step, on a line of its own (a tag may stand before it) and by the key
    that makes it one: so a manifest with a tool's name in it is none.
    """
    specs = getattr(schema, "specs", None)

    def is_next(between: str) -> bool:
        found = next(iter(objects_in(between)), None) if specs is not None and "{" in between else None
        if found is None or not found.value or not _STEP_KEYS & found.value.keys():
            return False
        before = between[: found.start].rpartition("\n")[2].strip()
        return (not before or before.startswith("<")) and _is_step(found, found, schema)

    return is_next


def _body_of(text: str, header: Found, fences: list[Fence], schema: type[BaseModel]) -> Fence | None:
    """The first block after the header, else the last one before it; never the one that the header stands in.

    The text ends where the next step begins: what stands behind that is its block.
    """
    after = fences_in(_behind(text, header, fences), _is_call(schema))
    if after:
        return after[0]
    before = [fence for fence in fences if fence.end <= header.start]
    return before[-1] if before else None


def _behind(text: str, header: Found, fences: list[Fence]) -> str:
    """What follows the header, and the fence around it."""
    rest = text[header.end :]
    if _is_inside(header.start, fences):
        return _OWN_FENCE_END.sub("", rest, count=1)
    return rest


def _is_inside(place: int, fences: Sequence[Fence]) -> bool:
    return any(fence.start < place < fence.end for fence in fences)


def _is_words(header: Found, schema: type[T]) -> bool:
    """Whether the body that belongs to this header is words, as the type's `is_words(header)` has it, if any."""
    says = cast(Callable[[dict[str, object]], bool] | None, getattr(schema, "is_words", None))
    return says is not None and header.value is not None and says(header.value)


def _words_of(text: str, header: Found, fences: list[Fence], schema: type[BaseModel]) -> Fence | None:
    """Words may hold blocks of code: those in a block around them, or all that follows where there is none."""
    rest = _behind(text, header, fences)
    fence = wrapping(rest, _is_call(schema))
    if fence is not None and (fence.info.lower() in _WORDS_INFO or not rest[fence.end :].strip()):
        return fence
    if rest.strip():
        return Fence(0, len(rest), "", rest.strip(), closed=False)
    return _body_of(text, header, fences, schema)


def _joined(header: dict[str, object], body_field: str, fence: Fence | None) -> dict[str, object]:
    """The header with its body: the fenced block, unless the body stands in the header already."""
    inside = header.get(body_field)
    if fence is None or (isinstance(inside, str) and inside.strip()):
        return header
    return {**header, body_field: fence.text}


def _salvaged(fences: list[Fence], schema: type[T], *, cut: bool) -> T | None:
    """What the first bare block says."""
    code = next((fence for fence in fences if not _may_be_json(fence)), None)
    return None if code is None or (cut and not code.closed) else _from_block(code, schema)


def _from_block(block: Fence, schema: type[T]) -> T | None:
    """A bare block, given to the type's `from_bare_body(info, body)` when it has one."""
    salvage = cast(Callable[[str, str], object] | None, getattr(schema, "from_bare_body", None))
    if salvage is None:
        return None
    try:
        value = salvage(block.info, block.text)
    except ValueError as error:
        raise Unreadable(f"a fenced block without a JSON object before it: {error}") from error
    return value if isinstance(value, schema) else None
