"""Define a language model as a role sees it: a question with a contract has a valid value or a clear error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from artoo.contracts.conversation import Message, ModelTurn
from artoo.contracts.events import Spent
from artoo.contracts.images import AttachedImage
from artoo.ports.tools import ToolSpec

T = TypeVar("T", bound=BaseModel)


class Tier(StrEnum):
    """The two tiers. brain: R1, R2, R4b, R7, Dreamer. tool: R3, R4a. R4b is never weaker than R2."""

    BRAIN = "brain"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Known:
    """The facts known of a tier's model before it is asked. `window`: tokens of prompt and answer together.

    `small`: its weights are small (`artoo.llm.wires.how.SMALL_BYTES`), which changes how it is best asked.
    `images`: the operator says that it takes images. `native`: it is asked with function calling; False: with
    the text dialect.
    """

    small: bool = False
    window: int = 32_768
    images: bool = False
    native: bool = True


class Question(NamedTuple, Generic[T]):
    """One call. `contract` is the JSON schema's name; `schema` the type that the answer must have.

    With `body_field`, the answer is free text with a short JSON object, a fenced block, or both: the block's text
    becomes that (string) field. No schema holds such an answer, since code in a JSON string breaks small models and
    a grammar over code spoils it; the prompt says which forms there are, and code reads them.
    `variant` 0 is greedy; a higher number asks for another answer to the same question (temperature, seed).
    `images` are shown to the model after the words: roles name them, the runtime puts their content into
    `pictures`, a data URL each.
    """

    contract: str
    schema: type[T]
    system: str
    user: str
    tier: Tier
    body_field: str | None = None
    max_tokens: int = 1_024
    variant: int = 0
    images: tuple[AttachedImage, ...] = ()
    pictures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Spent, Generic[T]):
    """A valid value, the text it came from, and what it cost.

    `small`: the model is known to be a small one (see `artoo.llm.wires.how.SMALL_BYTES`), whose figures deserve
    a second look.
    """

    value: T
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """The request for one turn of a conversation. `messages` only grow between compactions.

    `system` is the system prompt for function calling, `text_system` the one of the text dialect, which describes
    the tools and the fenced form. A line `contract: NAME` is in them, or in the first message. `tools` are
    offered in this order. `key` names the conversation for prompt caches. `max_tokens` bounds one answer;
    `variant` as in Question. `pictures` maps the SHA-256 of an image to its data URL.
    """

    contract: str
    tier: Tier
    system: str
    text_system: str
    tools: tuple[ToolSpec, ...]
    messages: tuple[Message, ...]
    key: str = ""
    max_tokens: int = 8_000
    variant: int = 0
    pictures: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken(Spent):
    """The turn that a model took, and what it cost.

    `native` says whether function calling was used. `raw` is the text as it came, for the log.
    """

    turn: ModelTurn
    native: bool = True
    raw: str = ""


OnText = Callable[[str], None]
"""Hears the words of an answer as they come. Quick, never raises."""


class Converses(Protocol):
    """Takes turns in conversations."""

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """Ask for the next turn. Nothing that was streamed is said or executed twice.

        Raises ModelUnreachable, ModelRefused, ContextOverflow, ModelAnswerInvalid or BudgetExhausted.
        """
        ...


class Model(Converses, Protocol):
    """Answers questions and takes turns in conversations. One per task: it knows the task's budget."""

    async def ask(self, question: Question[T]) -> Answer[T]:
        """Return the answer. Raises ModelUnreachable, ModelRefused, ModelAnswerInvalid or BudgetExhausted."""
        ...
