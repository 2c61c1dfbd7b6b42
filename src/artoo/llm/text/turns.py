"""Convert a completion into a conversation's turn, with native calls or the text dialect.

If that fails, the result is a problem that the model can repair. The functions are pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

import orjson
from pydantic import JsonValue

from artoo.contracts.conversation import ModelTurn, Took, ToolRequest
from artoo.contracts.text import well_formed, well_formed_value
from artoo.llm.completion import Called, Completion
from artoo.llm.text.call_forms import bare_calls, formed_calls
from artoo.llm.text.fences import fences_in
from artoo.llm.text.jsontext import objects_in
from artoo.llm.text.reading import LONGEST_ANSWER, Unreadable
from artoo.llm.text.steps import ANSWER, CANNOT, turn_of
from artoo.llm.text.thoughts import split_thoughts
from artoo.llm.transport import Json
from artoo.ports.model import Conversation

_BLOCK_MARK = re.compile(r"\A`{3,}\w*\n")


def read_turn(
    completion: Completion, conversation: Conversation, *, native: bool, small: bool = False
) -> ModelTurn:
    """Return the turn in a completion, in either dialect. Raises Unreadable."""
    cut = completion.finish == "length"
    taken = [call.id for each in conversation.messages if isinstance(each, Took) for call in each.turn.calls]
    if not native:
        new_id = _unused(f"call_{len(taken) + 1}", taken)
        return turn_of(completion.text, conversation.tools, new_id, cut=cut, small=small)
    spoken, thought, _ = split_thoughts(completion.content[:LONGEST_ANSWER])
    called = completion.calls
    if not called:
        spoken, called = _written_calls(spoken, {spec.name for spec in conversation.tools})
    calls: list[ToolRequest] = []
    for call in called:
        calls.append(_request(call, _unused(call.id or f"call_{len(taken) + 1}", taken)))
        taken.append(calls[-1].id)
    if not spoken.strip() and not calls:
        thinking = thought.strip() or completion.thoughts.strip()
        raise Unreadable("the answer ended while still thinking" if thinking else "the answer is empty")
    return ModelTurn(
        text=well_formed(spoken.strip()),
        calls=tuple(calls),
        reasoning=cast(JsonValue, well_formed_value(completion.reasoning)),
        cut=cut,
    )


def writes_steps(completion: Completion, conversation: Conversation) -> bool:
    """Return whether a model wrote a step of the text dialect although it was offered function calling.

    The answer then begins with `{"tool": NAME`, in a block or not. The reason is that the model or its server does
    not support function calls.
    """
    if completion.calls:
        return False
    spoken, _, _ = split_thoughts(completion.content[:LONGEST_ANSWER])
    begins = _BLOCK_MARK.sub("", spoken.lstrip(), count=1).lstrip()
    found = objects_in(spoken) if begins.startswith("{") else []
    names = {*(spec.name for spec in conversation.tools), ANSWER, CANNOT}
    return bool(found) and found[0].value is not None and found[0].value.get("tool") in names


def _written_calls(text: str, names: set[str]) -> tuple[str, Sequence[Called]]:
    """Return the text without the calls in it, and these calls. They may have marks or not.

    Raises Unreadable for an incomplete call.
    """
    blocks = [fence for fence in fences_in(text) if fence.closed]  # a call inside of a block is only an example
    formed = [
        call for call in formed_calls(text) if not any(fence.start < call.start < fence.end for fence in blocks)
    ]
    if any(each.value is None for each in formed):
        raise Unreadable("the tool call in the text is not complete; call tools by function calling")
    if not formed and (bare := bare_calls(text, names)):
        return "", [Called("", name, cast(Json, arguments)) for name, arguments in bare]
    called = [cast("dict[str, Json]", each.value) for each in formed]
    calls = [Called("", str(each["name"]), each["arguments"]) for each in called]
    return (text[: formed[0].start] if formed else text), calls


def _request(called: Called, new_id: str) -> ToolRequest:
    arguments, problem = _arguments(called.arguments)
    return ToolRequest(id=new_id, name=well_formed(called.name), arguments=arguments, problem=problem)


def _arguments(given: object) -> tuple[dict[str, JsonValue], str]:
    """Return the arguments of a call, or what is wrong with them. An incomplete object is never accepted."""
    if isinstance(given, dict):
        return cast(dict[str, JsonValue], well_formed_value(cast("dict[str, object]", given))), ""
    text = given if isinstance(given, str) else ""
    if not text.strip():
        return {}, ""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = objects_in(text)
        if len(found) != 1 or found[0].value is None:
            problem = found[0].problem if found else "the arguments are no JSON object"
            return {}, problem or "the arguments hold several JSON objects"
        value = found[0].value
    if isinstance(value, str):  # some servers encode the arguments twice
        return _arguments(value) if value != text else ({}, "the arguments are no JSON object")
    if not isinstance(value, dict):
        return {}, "the arguments are no JSON object"
    return cast(dict[str, JsonValue], well_formed_value(cast("dict[str, object]", value))), ""


def _unused(wanted: str, taken: list[str]) -> str:
    """Return an id that no call of the conversation has. Some servers use the same ids in every answer."""
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted}_{number}"
    return found
