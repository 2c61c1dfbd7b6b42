"""Parse tool calls that open models write as text in their own marks.

A server may pass such calls on as text instead of parsing them. The functions are pure.

Each form is one line of data. It has the opening mark, with or without the name of the tool, and what is between
the marks: a JSON value or a list of single arguments. A form that begins and does not end is an incomplete call.
Such a call is never executed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator
from typing import cast

from artoo.llm.text.jsontext import FoundJson, usable

_BAR = r"[|｜]"
# Forms whose mark contains the name. The arguments follow as a JSON object.
_NAMED = (
    rf"<{_BAR}tool▁call▁begin{_BAR}>(?:function<{_BAR}tool▁sep{_BAR}>)?(?P<name>[\w.-]+)"
    rf"(?:<{_BAR}tool▁sep{_BAR}>)?\s*(?:```json\s*)?",  # DeepSeek
    r"<\|tool_call_begin\|>\s*(?:functions\.)?(?P<name>[\w.-]+?)(?::\d+)?\s*"
    r"<\|tool_call_argument_begin\|>\s*",  # Kimi
    r"\[TOOL_CALLS\]\s*(?P<name>[\w.-]+)\s*(?:\[CALL_ID\]\w+\s*)?\[ARGS\]\s*",  # Mistral
    r"<\|channel\|>commentary\s+to=functions\.(?P<name>[\w.-]+)[^{}]*?<\|message\|>\s*",  # gpt-oss
    r"(?:assistant)?commentary\s+to=functions\.(?P<name>[\w.-]+)\s*(?:json|code)?\s*(?=\{)",  # without any marks
    r"<function=(?P<name>[\w.-]+)>\s*(?=\{)",  # Llama
)

# Forms whose mark is followed by a JSON object with name and arguments, or by a list of such objects.
_UNNAMED = (
    # Most models use a tag or a token with this name, also around several calls.
    r"<(?i:(?:\w{1,20}[:_])?(?:tool_?calls?|function_?calls?))>\s*(?=[\[{])",
    r"<\|(?:tool_call|tool_call_start|python_tag|START_ACTION|plugin)\|>\s*(?=[\[{])",
    r"\[TOOL_CALLS\]\s*(?=[\[{])",  # Mistral
    r"functools\s*(?=\[)",
)

_PREFIX = r"(?:\w{1,20}:|[|｜]\w{1,20}[|｜])?"
# For each form: the mark with the name, the beginning and the end of a parameter, and the end of the call. Values
# are plain text.
_ONE_BY_ONE = (
    # Qwen Coder, DeepSeek, and the tags that other agents' prompts describe
    (
        r"(?:(?<=\n)|\A|(?<=>))[ \t]*(?:</?[\w:-]{1,40}>[ \t]*)*"
        rf"<{_PREFIX}(?:invoke name=\"(?P<name>[^\"\n]{{1,64}})\"|function=(?P<other>[\w.-]{{1,64}}))>",
        rf"\s*<{_PREFIX}parameter(?: name=\"(?P<key>[^\"\n]{{1,64}})\"|=(?P<also>[\w.-]{{1,64}}))(?:\s[^<>\n]*)?>",
        rf"</{_PREFIX}parameter>",
        rf"\s*</{_PREFIX}(?:invoke|function)>",
    ),
    # GLM, LongCat
    (
        r"<(?:\w{1,20}_)?tool_call>(?P<name>[\w.-]{1,64})\s*(?=<(?:\w{1,20}_)?arg_key>|</(?:\w{1,20}_)?tool_call>)",
        r"\s*<(?:\w{1,20}_)?arg_key>(?P<key>[^<\n]{1,64})</(?:\w{1,20}_)?arg_key>\s*<(?:\w{1,20}_)?arg_value>",
        r"</(?:\w{1,20}_)?arg_value>",
        r"\s*</(?:\w{1,20}_)?tool_call>",
    ),
)

# Calls in Python syntax: Llama 4, Gemma, OLMo.
_PYTHON = re.compile(
    r"(?:<\|python_start\|>|<function_calls>|```tool_code\n)?\s*(?P<calls>\[?[A-Za-z_][\w.]*\([\s\S]*\)\]?)\s*"
    r"(?:<\|python_end\|>|</function_calls>|```)?"
)
_CLOSERS = re.compile(
    rf"\s*(?:```|</?(?:\w{{1,20}}[:_])?(?:tool_?calls?|function_?calls?)>|</function>|\[/TOOL_CALLS\]|<{_BAR}[\w▁]*(?:end|END|call)[\w▁]*{_BAR}>)",
    re.IGNORECASE,
)
_NAME_KEYS = ("name", "tool_name", "tool", "function")
_ARGUMENT_KEYS = ("arguments", "parameters", "input", "args")
_MOST_CALLS = 64

_JSON_FORMS = [re.compile(form) for form in (*_NAMED, *_UNNAMED)]
_LISTED_FORMS = [tuple(re.compile(part) for part in form) for form in _ONE_BY_ONE]


def formed_calls(text: str) -> list[FoundJson]:
    """Return the calls in a text in order, each as `{"name": …, "arguments": …}`.

    An incomplete call has no value and is the last one.
    """
    found: list[FoundJson] = []
    position = 0
    while len(found) < _MOST_CALLS and (next_calls := _next(text, position)):
        found += next_calls
        if found[-1].value is None:
            break
        position = found[-1].end
    return found


def bare_calls(text: str, names: Collection[str]) -> list[tuple[str, dict[str, object]]]:
    """Return the calls in a text that contains nothing else, and no marks. They are written as JSON or as Python.
    `names`: the names of the tools."""
    whole = text.strip()
    try:
        value = usable(json.loads(whole))
        given = cast("list[object]", value if isinstance(value, list) else [value])
        found = [_bare(one) for one in given]
    except (ValueError, RecursionError):
        written = _PYTHON.fullmatch(whole)
        found = [] if written is None else _from_python(written.group("calls"))
    calls = [one for one in found if one is not None and one[0] in names]
    return calls if len(calls) == len(found) else []


def _bare(value: object) -> tuple[str, dict[str, object]] | None:
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    arguments = fields.get("arguments")
    if fields.keys() != {"name", "arguments"} or not isinstance(arguments, dict):
        return None
    return str(fields["name"]), cast("dict[str, object]", arguments)


def _from_python(source: str) -> list[tuple[str, dict[str, object]] | None]:
    """Return the calls whose arguments are literals with names. For any other expression, None takes the place of
    the call."""
    try:
        tree = ast.parse(source, mode="eval").body
        parts = tree.elts if isinstance(tree, ast.List) else [tree]
        return [
            (part.func.id, {word.arg: ast.literal_eval(word.value) for word in part.keywords if word.arg})
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and not part.args
            else None
            for part in parts
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _next(text: str, position: int) -> list[FoundJson]:
    """Return the next call. If one mark begins a list, return several calls."""
    begun = [
        (match.start(), number, match)
        for number, form in enumerate((*_JSON_FORMS, *(form[0] for form in _LISTED_FORMS)))
        if (match := form.search(text, position)) is not None
    ]
    if not begun:
        return []
    start, number, match = min(begun, key=lambda each: each[:2])
    if number < len(_JSON_FORMS):
        return list(_from_json(text, start, match))
    return [_one_by_one(text, start, match, *_LISTED_FORMS[number - len(_JSON_FORMS)][1:])]


def _from_json(text: str, start: int, mark: re.Match[str]) -> Iterator[FoundJson]:
    try:
        read, end = cast("tuple[object, int]", json.JSONDecoder(strict=False).raw_decode(text, mark.end()))
        value = usable(read)
    except (ValueError, RecursionError):
        yield FoundJson(start, len(text), None)
        return
    while (closer := _CLOSERS.match(text, end)) is not None:
        end = closer.end()
    name = mark.groupdict().get("name")
    given = cast("list[object]", value) if isinstance(value, list) else [value]
    calls = [_called(each, name) for each in given]
    if not calls or None in calls:
        yield FoundJson(start, end, None)
        return
    for at, call in enumerate(calls):
        yield FoundJson(start if at == 0 else end, end, call)


def _called(value: object, name: str | None) -> dict[str, object] | None:
    """Return the name and the arguments of a call. Return None for any other value."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    if name is not None:
        return {"name": name, "arguments": fields}
    known = next((fields[key] for key in _NAME_KEYS if key in fields), None)
    if isinstance(known, dict):  # {"function": {"name": …, "arguments": …}}
        return _called(cast("dict[str, object]", known), None)
    given = next((key for key in _ARGUMENT_KEYS if key in fields), "")
    arguments: object = fields.get(given, dict[str, object]())
    return {"name": known, "arguments": arguments} if isinstance(known, str) else None


def _one_by_one(
    text: str,
    start: int,
    mark: re.Match[str],
    parameter: re.Pattern[str],
    value_end: re.Pattern[str],
    closing: re.Pattern[str],
) -> FoundJson:
    groups, position = mark.groupdict(), mark.end()
    arguments: dict[str, str] = {}
    while (begun := parameter.match(text, position)) is not None:
        ending = value_end.search(text, begun.end())
        if ending is None:
            return FoundJson(start, len(text), None)
        keys, value = begun.groupdict(), text[begun.end() : ending.start()]
        if keys.get("also"):
            value = value.removeprefix("\n").removesuffix("\n")
        arguments[keys.get("key") or keys.get("also") or ""] = value
        position = ending.end()
    closed = closing.match(text, position)
    if closed is None:
        return FoundJson(start, len(text), None)
    name = groups.get("name") or groups.get("other")
    return FoundJson(start, closed.end(), {"name": name, "arguments": arguments})
