"""The interface of a model for roles, with tiers, questions, conversations, and default answer lengths and window.

A question with a contract yields a valid value or an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from artoo.contracts.conversation import Message, ModelTurn
from artoo.contracts.events import Spent
from artoo.contracts.request import AttachedImage
from artoo.ports.tools import ToolSpec

T = TypeVar("T", bound=BaseModel)


class Tier(StrEnum):
    """The two tiers. brain: R1, R2, R4b, R7, Dreamer. tool: R3, R4a. R4b is never weaker than R2."""

    BRAIN = "brain"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Known:
    """The facts about a tier's model that are known before a call. `window`: tokens of prompt and answer together.

    `small`: its weights are small (`artoo.llm.wires.how.SMALL_BYTES`), so it gets other prompts. `images`:
    according to the operator it accepts images. `native`: it is called with function calling; if false, with the
    text dialect."""

    small: bool = False
    window: int = 32_768
    images: bool = False
    native: bool = True


class Question(NamedTuple, Generic[T]):
    """One call. `contract` is the JSON schema's name; `schema` is the required type of the answer.

    With `body_field`, the answer is free text with a short JSON object, a fenced block, or both, and the block's
    text becomes that (string) field. No schema is enforced on such an answer, because small models fail to write
    code in a JSON string, and a grammar makes code worse; the prompt describes the forms, and a parser reads
    them. `variant` 0 is greedy; a higher number requests another answer to the same question (temperature, seed).
    `images` are shown to the model after the text. Roles name them; the runtime puts their content into
    `pictures`, one data URL for each."""

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
    """A valid value, the text from which it was parsed, and its cost.

    `small`: the model is known to be small (see `artoo.llm.wires.how.SMALL_BYTES`), so its figures are checked a
    second time."""

    value: T
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """The request for one turn of a conversation. `messages` only grow between compactions.

    `system` is the system prompt for function calling; `text_system` is that of the text dialect, which describes
    the tools and the fenced form. The prompts or the first message contain a line `contract: NAME`. `tools` are
    offered in this order. `key` names the conversation for prompt caches. `max_tokens` limits one answer;
    `variant` is as in Question. `pictures` maps the SHA-256 of an image to its data URL."""

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
    """The turn that a model took, and its cost.

    `native` is true if function calling was used. `raw` is the unparsed text, for the log."""

    turn: ModelTurn
    native: bool = True
    raw: str = ""


OnText = Callable[[str], None]
"""A callback for pieces of an answer while it is streamed. It must return quickly and never raise."""


class Converses(Protocol):
    """An interface for taking turns in conversations."""

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """Request the next turn. Streamed text is never repeated, and no call in it is executed twice.

        Raises ModelUnreachable, ModelRefused, ContextOverflow, ModelAnswerInvalid or BudgetExhausted.
        """
        ...


class Model(Converses, Protocol):
    """A model that answers questions and takes turns in conversations. Each task has its own, with the task's
    budget."""

    async def ask(self, question: Question[T]) -> Answer[T]:
        """Return the answer. Raises ModelUnreachable, ModelRefused, ModelAnswerInvalid or BudgetExhausted."""
        ...
