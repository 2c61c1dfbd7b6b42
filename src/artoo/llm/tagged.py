"""Tool calls in tags, as some models are trained to write them and some servers hand them through (pure).

    <invoke name="shell">                         <function=shell>
    <parameter name="command">ls</parameter>      <parameter=command>
    </invoke>                                     ls
                                                  </parameter>
                                                  </function>

Tags around a call may have any name. A value is text as it stands: the form has no escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENING = re.compile(
    r'^[ \t]*(?:</?[\w:-]{1,40}>[ \t]*)*(<(?:\w{1,20}:)?(?:invoke name="([^"\n]{1,64})"|function=([\w.-]{1,64}))>)',
    re.MULTILINE,
)
_PARAMETER = re.compile(r'\s*<(?:\w{1,20}:)?parameter(?: name="([^"\n]{1,64})"|=([\w.-]{1,64}))>')
_VALUE_END = re.compile(r"</(?:\w{1,20}:)?parameter>")
_CLOSING = re.compile(r"\s*</(?:\w{1,20}:)?(?:invoke|function)>")


@dataclass(frozen=True, slots=True)
class Tagged:
    """A call in tags: its place, and itself as a line of JSON (a native call)."""

    start: int
    end: int
    line: str


def tagged_calls(text: str) -> Iterator[Tagged]:
    """The whole ones, in order, each on a line of its own. Nothing of the text is looked at twice."""
    position = 0
    while (opening := _OPENING.search(text, position)) is not None:
        named, position = opening.group(2) is not None, opening.end()
        arguments: dict[str, str] = {}
        while (parameter := _PARAMETER.match(text, position)) is not None:
            ending = _VALUE_END.search(text, parameter.end())
            if ending is None:
                return
            value = text[parameter.end() : ending.start()]
            arguments[parameter.group(1) or parameter.group(2)] = (
                value if named else value.removeprefix("\n").removesuffix("\n")
            )
            position = ending.end()
        if (closing := _CLOSING.match(text, position)) is not None:
            position = closing.end()
            call = {"name": opening.group(2) or opening.group(3), "arguments": arguments}
            yield Tagged(opening.start(1), position, json.dumps(call))


def untagged(text: str, calls: list[Tagged]) -> str:
    """The text with each of these calls as its line of JSON."""
    parts, position = list[str](), 0
    for call in calls:
        parts += (text[position : call.start], f"\n{call.line}\n")
        position = call.end
    return "".join((*parts, text[position:]))
