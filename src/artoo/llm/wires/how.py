"""The interface of a wire, the options of one request with default answer length, and the size of a small model.

The functions are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple, TypeVar, cast

from artoo.contracts.conversation import ModelTurn
from artoo.llm.completion import Completion, status_of
from artoo.llm.prompt import Prompt
from artoo.llm.streamed import Event, objects
from artoo.llm.transport import Json, TransportReply

Reasoning = Literal["off", "low", "medium", "high"]

# Number of tokens of an answer that, as far as is known, every server allows.
SHORT_ANSWER = 4_096
_WARMER, _HOTTEST = 0.3, 0.9
# A model whose weights have fewer bytes than this is small. The number corresponds to about eight billion
# parameters with four bits each.
SMALL_BYTES = 5_000_000_000


class Form(StrEnum):
    """The ways to request structured output, strongest first. `free` requests none."""

    JSON_SCHEMA = "json_schema"
    FORCED_TOOL = "forced_tool"
    JSON_OBJECT = "json_object"
    PROMPTED = "prompted"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class ServerTraits:
    """The properties of a server that are not part of its dialect.

    `is_openai`: true if it accepts a cache key. `model_bytes`: the size of its model's weights. `window`: the
    tokens of the context. Both are None if the server does not report them. `reasoning`: how much the model shall
    think, as configured.
    """

    is_llama: bool = False
    model_bytes: int | None = None
    window: int | None = None
    is_openai: bool = False
    reasoning: Reasoning | None = None

    @property
    def is_small(self) -> bool:
        """Return whether the model is known to be small."""
        return self.model_bytes is not None and self.model_bytes < SMALL_BYTES


@dataclass(frozen=True, slots=True)
class How:
    """The options of one request. `without` contains the names of the optional features that the server refuses
    (see `artoo.llm.dialect`). `used` collects the features that the request uses. Variant 0 is greedy decoding.
    Variant n samples with the seed n and a temperature that rises slowly, because a small model writes nonsense if
    it rises too fast.
    """

    model: str
    form: Form = Form.FREE
    without: frozenset[str] = frozenset()
    variant: int = 0
    max_tokens: int = 1_024
    stop: tuple[str, ...] = ()
    stream: bool = False
    traits: ServerTraits = field(default_factory=ServerTraits)
    used: set[str] = field(default_factory=set[str], compare=False)

    def has(self, feature: str) -> bool:
        """Return whether the request may use a feature. If it may, record that it does."""
        if feature in self.without:
            return False
        self.used.add(feature)
        return True

    @property
    def temperature(self) -> float:
        """Return the temperature for the variant."""
        return min(_HOTTEST, _WARMER * self.variant)

    @property
    def limit(self) -> int:
        """Return the token limit of the answer."""
        short = self.max_tokens <= SHORT_ANSWER or not self.has("long_answer")
        return min(self.max_tokens, SHORT_ANSWER) if short else self.max_tokens


class Wire(NamedTuple):
    """One format of requests and answers.

    `words` returns the visible text in an event of a stream. `gathered` joins the events to the whole answer, in
    the form in which the server sends it without a stream. It returns None if the stream ended early. `completion`
    parses a whole answer.
    """

    path: str
    body_of: Callable[[Prompt, How], dict[str, object]]
    words: Callable[[Mapping[str, Json]], str]
    gathered: Callable[[Sequence[Event]], Json]
    completion: Callable[[dict[str, Json]], Completion | None]

    def read(self, reply: TransportReply) -> TransportReply:
        """Add the parsed answer to a reply, if the reply contains one."""
        if reply.events:
            reply = reply._replace(body=self.gathered(reply.events))
        if not isinstance(reply.body, dict) or status_of(reply) != 200:
            return reply
        return reply._replace(completion=self.completion(reply.body))


TEXT: Json = {"type": "text"}
# TEXT and CALL mark the positions of a turn's text and of its calls among its thoughts.
CALL: Json = {"type": "call"}

Part = TypeVar("Part")


def in_place(turn: ModelTurn, field: str, text: list[Part], calls: list[Part], *, thoughts: bool) -> Iterator[Part]:
    """Yield the parts of a turn in their original order. The thoughts in the field `field` of its reasoning come
    before the text or the call that follows from them.
    """
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
    """Return the reasoning of a turn for `in_place`. Return None if it contains no thought."""
    return {field: parts} if any(part not in (TEXT, CALL) for part in parts) else None
