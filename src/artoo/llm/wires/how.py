"""What all wires share: the port of a wire, and how one request is written (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar, cast

from pydantic import BaseModel

from artoo.contracts.conversation import ModelTurn
from artoo.llm.completion import Completion, status_of
from artoo.llm.prompt import Prompt
from artoo.llm.schema import Schema, is_strict, schema_of, strict_form
from artoo.llm.streamed import Event, objects
from artoo.llm.transport import Json, TransportReply

Reasoning = Literal["off", "low", "medium", "high"]


class Form(StrEnum):
    """How structure is asked for, strongest first. `free` asks for none."""

    JSON_SCHEMA = "json_schema"
    FORCED_TOOL = "forced_tool"
    JSON_OBJECT = "json_object"
    PROMPTED = "prompted"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class How:
    """`without` names the optional features that the server refuses, see `artoo.llm.dialect`. `reasoning` None:
    as the server likes. `strict`: schemas are wanted in strict form. `llama`: the server is llama.cpp's."""

    model: str
    form: Form = Form.FREE
    without: frozenset[str] = frozenset()
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int | None = 1_024
    stop: tuple[str, ...] = ()
    stream: bool = False
    reasoning: Reasoning | None = None
    strict: bool = False
    llama: bool = False
    caches: bool = False

    def has(self, feature: str) -> bool:
        """True if the server was not seen to refuse this feature."""
        return feature not in self.without


@lru_cache(maxsize=256)
def answer_schema(schema: type[BaseModel], *, wants_strict: bool) -> tuple[Schema, bool]:
    """The schema of an answer, and whether it is strict: every object closed, every property required."""
    form = schema_of(schema)
    strict = strict_form(form) if wants_strict else (form if is_strict(form) else None)
    return (form, False) if strict is None else (strict, True)


class Wire(NamedTuple):
    """One format of requests and answers.

    `words`: those for people that an event of a stream brings. `gathered`: the whole answer that events make up, as
    the server would have sent it without a stream; None when it was cut off. `completion` reads a whole answer.
    """

    path: str
    body_of: Callable[[Prompt, How], dict[str, object]]
    words: Callable[[Mapping[str, Json]], str]
    gathered: Callable[[Sequence[Event]], Json]
    completion: Callable[[dict[str, Json]], Completion | None]

    def read(self, reply: TransportReply) -> TransportReply:
        """The reply with the answer that it brings, if it brings one."""
        if reply.events:
            reply = reply._replace(body=self.gathered(reply.events))
        if not isinstance(reply.body, dict) or status_of(reply) != 200:
            return reply
        return reply._replace(completion=self.completion(reply.body))


TEXT: Json = {"type": "text"}
CALL: Json = {"type": "call"}
"""In the reasoning of a turn: the places of its text and of its calls among its thoughts."""

Part = TypeVar("Part")


def in_place(turn: ModelTurn, field: str, text: list[Part], calls: list[Part], *, thoughts: bool) -> Iterator[Part]:
    """The parts of a turn as they came: the thoughts in `field` of its reasoning stand before what they led to."""
    kept = turn.reasoning.get(field) if isinstance(turn.reasoning, dict) else None
    rest = list(calls)
    for part in objects(cast(Json, kept)):
        if part == TEXT:
            yield from text
            text = []
        elif part == CALL:
            yield from rest[:1]
            rest = rest[1:]
        elif thoughts:
            yield cast(Part, part)
    yield from (*text, *rest)


def kept_thoughts(field: str, parts: list[Json]) -> Json:
    """The reasoning of a turn for `in_place`; None where nothing of it is a thought."""
    return {field: parts} if any(part not in (TEXT, CALL) for part in parts) else None
