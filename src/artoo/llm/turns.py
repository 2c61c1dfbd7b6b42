"""From a completion to the turn that a model took in a conversation, or to a problem that it can repair (pure)."""

from __future__ import annotations

from typing import cast

import orjson
from pydantic import JsonValue

from artoo.contracts.conversation import ModelTurn, Took, ToolRequest
from artoo.contracts.well_formed import well_formed, well_formed_value
from artoo.llm.completion import Called, Completion
from artoo.llm.jsontext import objects_in
from artoo.llm.reading import LONGEST_ANSWER, Unreadable
from artoo.llm.thoughts import split_thoughts
from artoo.llm.wires.text import turn_of
from artoo.ports.model import Conversation


def read_turn(
    completion: Completion, conversation: Conversation, *, native: bool, small: bool = False
) -> ModelTurn:
    """The turn that a completion says, in either dialect. Raises Unreadable."""
    cut = completion.finish == "length"
    taken = [call.id for each in conversation.messages if isinstance(each, Took) for call in each.turn.calls]
    if not native:
        new_id = _unused(f"call_{len(taken) + 1}", taken)
        return turn_of(completion.text, conversation.tools, new_id, cut=cut, small=small)
    spoken, thought = split_thoughts(completion.content[:LONGEST_ANSWER])
    calls: list[ToolRequest] = []
    for called in completion.calls:
        request = _request(called, _unused(called.id or f"call_{len(taken) + 1}", taken))
        taken.append(request.id)
        calls.append(request)
    if not spoken.strip() and not calls:
        thinking = thought.strip() or completion.thoughts.strip()
        raise Unreadable("the answer ended while still thinking" if thinking else "the answer is empty")
    return ModelTurn(
        text=well_formed(spoken.strip()),
        calls=tuple(calls),
        reasoning=cast(JsonValue, well_formed_value(completion.reasoning)),
        cut=cut,
    )


def _request(called: Called, new_id: str) -> ToolRequest:
    arguments, problem = _arguments(called.arguments)
    return ToolRequest(id=new_id, name=well_formed(called.name), arguments=arguments, problem=problem)


def _arguments(given: object) -> tuple[dict[str, JsonValue], str]:
    """The arguments of a call, or what is wrong with them. Half an object is never taken for a whole one."""
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
    if isinstance(value, str):  # arguments that were encoded twice
        return _arguments(value) if value != text else ({}, "the arguments are no JSON object")
    if not isinstance(value, dict):
        return {}, "the arguments are no JSON object"
    return cast(dict[str, JsonValue], well_formed_value(cast("dict[str, object]", value))), ""


def _unused(wanted: str, taken: list[str]) -> str:
    """An id that no call of the conversation has: some servers give the same ones in every answer."""
    found, number = wanted, 1
    while found in taken:
        number += 1
        found = f"{wanted}_{number}"
    return found
