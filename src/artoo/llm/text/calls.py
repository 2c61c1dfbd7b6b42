"""The shapes in which models write a tool call, as the one that is asked for (pure).

    {"tool": T, "input": I, "more": {name: value}}      the form that prompts show
    {"tool": T, name: value}                            arguments beside the tool
    {"tool": T, "arguments": {…}}                       or below a name of their own; as JSON in a text, too
    {"name": T, "arguments": {…}}                       a native call (OpenAI), also in `function`
    {"type": "tool_use", "name": T, "input": {…}}       a native call (Anthropic)

A name by which other agents know a tool (an alias) is read as its own where no tool has that name and one alone has
it as an alias. Names and types of arguments are the tool layer's to read (`ports.arguments`).

Nothing is dropped: what is no argument of the tool stands in `more` all the same, and the call is refused for it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import cast

from artoo.ports.tools import ToolSpec, own_names

Fields = Mapping[str, object]

_HOLDERS = ("arguments", "args", "parameters", "params", "input")
_ENVELOPE = frozenset({"type", "id"})
"""What formats put around a call's name and arguments."""


def as_call(given: Fields, specs: Mapping[str, ToolSpec], fields: Collection[str]) -> dict[str, object]:
    """The call with the fields of a step alone; one that is in this form comes back equal.

    `specs`: the tools by name; what names none of them is an ending, whose only further text is its words.
    """
    call = _named(given)
    spec = _meant(str(call.get("tool")), specs)
    call |= {"tool": spec.name} if spec is not None else {}
    parameters = spec.parameters if spec is not None else ()
    names = frozenset(name for one in parameters for name in (one.name, *one.aliases))
    more: dict[str, object] = {}
    for holder in _HOLDERS:
        inner = _object(call.get(holder))
        if holder in names - {"input"} or inner is None or (holder == "input" and not names & inner.keys()):
            continue
        del call[holder]
        if "tool" in inner and "tool" not in names:  # a function whose argument is the step itself
            return as_call({**call, **inner}, specs, fields)
        for name, value in inner.items():
            (call if name in fields and name not in names and name not in call else more)[name] = value
    if isinstance(call.get("arguments"), str) and "arguments" not in names and not call.get("input"):
        call["input"] = call.pop("arguments")
    more |= {name: call.pop(name) for name in tuple(call) if name not in fields}
    if spec is not None and spec.body is not None and spec.whole_lines and call.get("body"):
        more[spec.body] = call.pop("body")  # in JSON a text has its last newline; a block's stands outside it
    if spec is None and not call.get("input") and not call.get("body"):
        ending = str(call.get("tool"))
        words = ending if ending in more or len(more) != 1 else next(iter(more))
        call |= {"input": more.pop(words)} if words in more else {}
    more |= _more(call)
    call |= {"more": {name: value for name, value in more.items() if value is not None}} if more else {}
    return {name: value for name, value in call.items() if value is not None}


def _meant(name: str, specs: Mapping[str, ToolSpec]) -> ToolSpec | None:
    """The tool of this name, or the only one that others call so."""
    return specs.get(name) or specs.get(own_names(spec.named for spec in specs.values()).get(name, ""))


def _named(given: Fields) -> dict[str, object]:
    """With the tool's name as `tool`."""
    call = dict(given)
    function = call.get("function")
    if "tool" not in call and isinstance(function, dict):
        call = {**{name: call[name] for name in call if name != "function"}, **cast("dict[str, object]", function)}
    if "tool" not in call and isinstance(call.get("name"), str):
        call["tool"] = call.pop("name")
        call = {name: value for name, value in call.items() if name not in _ENVELOPE}
    return call


def _more(call: Fields) -> Fields:
    more = call.get("more")
    return cast("Fields", more) if isinstance(more, dict) else {}


def _object(value: object) -> Fields | None:
    """A JSON object, given as such or as its text."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value, strict=False)
        except (ValueError, RecursionError):
            return None
    return cast("Fields", value) if isinstance(value, dict) else None
