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
    """The two tiers of models. The `brain` tier is for the perceiver (R1), the planner (R2), the validator of the
    task (R4b), the synthesiser (R7) and the Dreamer. The `tool` tier is for the executors (R3) and the validators
    of subtasks (R4a). The model of R4b is never weaker than the model of R2."""

    BRAIN = "brain"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Known:
    """The facts about a tier's model that are known before a call. `window` is the maximum number of tokens of a
    prompt and its answer together.

    `small` is true if the weights of the model are small (`artoo.llm.wires.how.SMALL_BYTES`). Such a model gets
    other prompts. `images` is true if the operator says that the model accepts images. `native` is true if the
    model is called with function calling. If it is false, the text dialect is used."""

    small: bool = False
    window: int = 32_768
    images: bool = False
    native: bool = True


class Question(NamedTuple, Generic[T]):
    """One question to a model. `contract` is the name of the JSON schema, and `schema` is the type that the answer
    must have.

    If `body_field` is given, the model answers in free text with a short JSON object, a fenced block, or both. The
    text of the block becomes the field of that name, which must be a string. No schema is enforced on such an
    answer, because small models fail to write code in a JSON string, and a grammar makes code worse; the prompt
    describes the forms, and a parser reads them. `variant` 0 requests the most probable answer (greedy decoding). A
    higher number requests another answer to the same question by another temperature and seed. `images` are shown
    to the model after the text. Roles give the names of the images. The runtime puts their contents into
    `pictures`, as one data URL for each image."""

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
    """A valid answer of a model, the text from which it was parsed, and its cost.

    `small` is true if the model is known to be small (see `artoo.llm.wires.how.SMALL_BYTES`), so that the figures
    in its answer are checked a second time."""

    value: T
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """The request for one turn of a conversation. `messages` only grow, except that a compaction replaces them.

    `system` is the system prompt for function calling. `text_system` is the system prompt for the text dialect: it
    describes the tools and the fenced form. Either the prompts or the first message contain a line `contract:
    NAME`. `tools` are offered in this order. `key` names the conversation, so that servers find it in their prompt
    caches. `max_tokens` limits one answer. `variant` has the same meaning as in Question. `pictures` maps the
    SHA-256 of an image to its data URL."""

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

    `native` is true if the model was called with function calling. `raw` is the text of the model before parsing,
    for the log."""

    turn: ModelTurn
    native: bool = True
    raw: str = ""


OnText = Callable[[str], None]
"""A callback that receives each piece of an answer while the answer is streamed. It must return quickly and never
raise."""


class Converses(Protocol):
    """An interface for requesting the turns of conversations from a model."""

    async def converse(self, conversation: Conversation, on_text: OnText | None = None) -> Spoken:
        """Request the model's next turn. Text that was streamed is never streamed again, and no call in it is
        executed twice.

        Raises ModelUnreachable, ModelRefused, ContextOverflow, ModelAnswerInvalid or BudgetExhausted.
        """
        ...


class Model(Converses, Protocol):
    """A model that answers questions and takes turns in conversations. Each task has its own Model object, which
    spends the budget of this task."""

    async def ask(self, question: Question[T]) -> Answer[T]:
        """Return the answer. Raises ModelUnreachable, ModelRefused, ModelAnswerInvalid or BudgetExhausted."""
        ...
