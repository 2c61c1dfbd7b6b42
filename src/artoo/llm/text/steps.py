"""Parse one step of the text dialect (tool, input, more arguments) into a turn.

Models write steps in several forms. The functions are pure.

    {"tool": T, "input": I, "more": {name: value}}      the form that prompts show; a block below it is its body
    {"tool": T, name: value}                            arguments next to the tool
    {"tool": T, "arguments": {…}}                       arguments in a field of their own, also as a JSON text
    {"name": T, "arguments": {…}}                       a native call (OpenAI), also in `function`
    {"type": "tool_use", "name": T, "input": {…}}       a native call (Anthropic)
    ```bash …                                           a program alone, whose output is the answer
    a form of `call_forms`, or plain words              plain words are the answer

If a name is unknown, but other agents use it for one of the tools (an alias), it means this tool. It must be an
alias of one tool only. The tool layer checks the names and types of arguments (`ports.arguments`). It refuses a
call that has an unknown argument.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

from pydantic import JsonValue

from artoo.contracts.conversation import ModelTurn, ToolRequest
from artoo.llm.text.call_forms import formed_calls
from artoo.llm.text.fences import Fence, fences_in
from artoo.llm.text.jsontext import FoundJson, objects_in
from artoo.llm.text.reading import (
    LONGEST_ANSWER,
    Unreadable,
    blank,
    body_of,
    holds_code,
    is_inside,
    without_code,
    words_of,
)
from artoo.llm.text.thoughts import split_thoughts
from artoo.ports.arguments import as_text, json_types
from artoo.ports.tools import ToolSpec, own_names

ANSWER, CANNOT, DELIVER = "answer", "cannot", "deliver"

Fields = Mapping[str, object]

_HOLDERS = ("more", "arguments", "args", "parameters", "params", "input")
# Fields of steps and native calls that are no arguments. They include fields that name the sources of an answer,
# because these are determined by the record of calls.
_IGNORED = ("is_final", "sources", "failures", "type", "id")


@dataclass(frozen=True, slots=True)
class _Step:
    """One step. `body` is the text in the fenced block. None means that there is no block, and "" that it is
    empty."""

    tool: str
    input: JsonValue = ""
    more: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    final: bool = False
    body: str | None = None


def turn_of(
    text: str, tools: Sequence[ToolSpec], new_id: str, *, cut: bool = False, small: bool = False
) -> ModelTurn:
    """Return the turn that a text contains. `new_id`: the id for its call. `small`: true if a final step counts
    even if other steps follow it.

    Raises Unreadable.
    """
    spoken, thought, _ = split_thoughts(text[:LONGEST_ANSWER])
    if not spoken.strip():  # a step inside of a thought is never executed
        raise Unreadable("the answer ended while still thinking" if thought.strip() else "the answer is empty")
    step, others = _Reader({spec.name: spec for spec in tools}).read(spoken, cut=cut)
    words = (step.body or as_text(step.input)).strip()
    if step.tool == ANSWER:
        return ModelTurn(text=words, cut=cut)
    if step.tool == CANNOT:
        reason: dict[str, JsonValue] = {"reason": words}
        return ModelTurn(calls=(ToolRequest(id=new_id, name=CANNOT, arguments=reason),), cut=cut)
    spec = next(spec for spec in tools if spec.name == step.tool)
    calls = [ToolRequest(id=new_id, name=spec.name, arguments=_arguments(spec, step))]
    # If several steps follow one another, the output of the first one cannot be the whole answer.
    if step.final and (small or not others):
        calls.append(ToolRequest(id=f"{new_id}_deliver", name=DELIVER))
    return ModelTurn(calls=tuple(calls), cut=cut)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads steps that use these tools. The tools are given by their names."""

    specs: Mapping[str, ToolSpec]

    def read(self, text: str, *, cut: bool) -> tuple[_Step, bool]:
        """Return the first step of a text, and whether more steps follow it. Raises Unreadable."""
        fences = fences_in(text)
        headers = objects_in(without_code(text, fences))
        formed = [each for each in formed_calls(text) if not is_inside(each.start, fences)]
        if formed and (not headers or formed[0].start < headers[0].start):
            if formed[0].value is None:
                raise Unreadable("the tool call is not complete")
            calls = [each for each in formed if each.value is not None]
            text = blank(text, calls)  # blocks and headers inside of their arguments do not count
            fences = fences_in(text)
            headers = sorted((*objects_in(without_code(text, fences)), *calls), key=lambda each: each.start)
        code = next(filter(holds_code, fences), None)
        if not headers and code is not None and (code.closed or not cut) and (step := self._program(code)):
            return step, self._more_follow((), fences)
        problem = "" if fences or cut else "words"
        for number, found in enumerate(every := headers or objects_in(text)):
            try:
                step = self._step(found)
            except Unreadable as error:
                problem = error.problem if problem in ("", "words") else problem
                continue
            until = next((each.start for each in every[number + 1 :] if self._is_step(each)), len(text))
            words = step.tool in (ANSWER, CANNOT)
            fence = words_of(text, found, fences) if words else body_of(text[:until], found, fences)
            if fence is not None and not fence.closed and cut:
                raise Unreadable("the fenced block for body is cut off: it never closes")
            if fence is not None and not (step.body or "").strip():
                step = _Step(step.tool, step.input, step.more, step.final, fence.text)
            return step, not words and self._more_follow(every[number:], fences)
        if problem == "words":
            return _Step(ANSWER, body=text.strip()), False
        raise Unreadable(problem or "the answer has none of the forms that were asked for")

    def _program(self, fence: Fence) -> _Step | None:
        """Return the step for a block that contains a program, without a line of JSON. Return None if no tool runs
        its language."""
        info = fence.info.strip().lower()
        running = (spec for spec in self.specs.values() if spec.languages and info in (*spec.languages, spec.name))
        tool = next(running, None)
        return None if tool is None else _Step(tool.name, final=True, body=fence.text)

    def _more_follow(self, headers: Sequence[FoundJson], fences: Sequence[Fence]) -> bool:
        """Return whether another step follows the first of these headers, or the first block.

        A block after a header belongs to the header. A block after another block is a step of its own if it
        contains a program.
        """
        begun = headers[0].start if headers else 0
        blocks = [fence for fence in fences if fence.start >= begun and holds_code(fence)]
        parts: list[FoundJson | Fence] = sorted((*headers, *blocks), key=lambda part: part.start)
        return any(
            self._is_step(part)
            if isinstance(part, FoundJson)
            else isinstance(before, Fence) and self._program(part)
            for before, part in pairwise(parts)
        )

    def _is_step(self, found: FoundJson) -> bool:
        try:
            self._step(found)
        except Unreadable:
            return False
        return True

    def _step(self, found: FoundJson) -> _Step:
        if found.value is None:
            raise Unreadable(found.problem)
        return self._read_call(found.value)

    def _read_call(self, given: Fields) -> _Step:
        """Return the step for an object in one of the forms. Raises Unreadable."""
        call = {name: value for name, value in _named(given).items() if value is not None}
        if len(call) == 1 and isinstance(inner := next(iter(call.values())), dict):
            return self._read_call(cast("Fields", inner))  # wrapped in an object with the name of the contract
        name = str(call.pop("tool", ""))
        spec = self._meant(name)
        if spec is None and name not in (ANSWER, CANNOT):
            raise Unreadable(f"tool: {name!r} is none of {', '.join((*self.specs, ANSWER, CANNOT))}")
        parameters = spec.parameters if spec is not None else ()
        names = frozenset(name for one in parameters for name in (one.name, *one.aliases))
        more: dict[str, object] = {}
        for holder in _HOLDERS:
            inner = _object(call.get(holder))
            if inner is not None and (names & inner.keys() if holder == "input" else holder not in names):
                more |= inner
                del call[holder]
        final = "is_final" not in names and str(call.get("is_final")).lower() in ("true", "1")
        inline, body = call.pop("input", ""), call.pop("body", None)
        more |= {key: value for key, value in call.items() if key in names or key not in _IGNORED}
        if spec is not None and spec.body is not None and spec.whole_lines and body:
            # a text in JSON contains its last newline, and the text of a block does not
            more[spec.body], body = body, None
        # the text of an ending, in a field with another name
        if spec is None and not inline and not body and len(more) == 1:
            inline = more.popitem()[1]
        values = {key: cast("JsonValue", value) for key, value in more.items() if value is not None}
        block = None if body is None else as_text(cast("JsonValue", body))
        return _Step(spec.name if spec else name, cast("JsonValue", inline), values, final, block)

    def _meant(self, name: str) -> ToolSpec | None:
        """Return the tool with this name. Otherwise return the tool that has the name as an alias, if there is only
        one."""
        return self.specs.get(name) or self.specs.get(
            own_names(spec.named for spec in self.specs.values()).get(name, "")
        )


def _arguments(spec: ToolSpec, step: _Step) -> dict[str, JsonValue]:
    """Return the input, the block and the other values of a step as named arguments of its tool.

    Models sometimes write code into `input`, or a path into the block. If a required parameter is missing, it gets
    the value of the other field. A value for which there is no parameter keeps its name, so that the tool refuses
    the call. Such values are dropped if the call is complete without them and harmless, because it is a program or
    its tool only reads.
    """
    block, more = step.body, step.more
    # 0 and false count as input too.
    inline = as_text(step.input) if isinstance(step.input, bool | int | float) else step.input
    first = None if spec.inline is None else spec.inline.name
    own = own_names(one.named for one in spec.parameters)
    given = {own.get(name, name): value for name, value in more.items()}
    arguments = dict(more)
    if spec.body is not None and block is not None and (block or first or not inline):
        text = f"{block}\n" if spec.whole_lines and block.strip("\n") else block
        if text or spec.body not in given:
            arguments[spec.body if given.get(spec.body, text) == text else "block"] = text
    if first is not None and first not in given:
        arguments[first] = inline or ("" if spec.body is not None else (block or "").strip())
    elif spec.body is not None and spec.body not in {**given, **arguments} and (inline or first is None):
        arguments[spec.body] = inline
    elif inline:
        arguments["input"] = inline
    harmless = bool(spec.languages) or not spec.writes
    types = {name: json_types(one.schema) for one in spec.parameters for name in (one.name, *one.aliases)}
    return {
        name: as_text(value) if types.get(name) == frozenset({"string"}) else value
        for name, value in arguments.items()
        if name in types or not harmless
    }


def _named(given: Fields) -> dict[str, object]:
    """Return a call in which the name of the tool is in the field `tool`."""
    function = given.get("function")
    call = {**given, **cast("Fields", function)} if isinstance(function, dict) else dict(given)
    if "tool" not in call and isinstance(call.get("name"), str):
        call.pop("function", None)
        call["tool"] = call.pop("name")
    return call


def _object(value: object) -> Fields | None:
    """Return a JSON object that is given as an object or as a JSON text. Return None for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value, strict=False)
        except (ValueError, RecursionError):
            return None
    return cast("Fields", value) if isinstance(value, dict) else None
