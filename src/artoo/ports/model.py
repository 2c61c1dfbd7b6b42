"""A language model as a role sees it: ask with a contract, get a valid value or a clear error."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel

from artoo.contracts.events import Usage

T = TypeVar("T", bound=BaseModel)


class Tier(StrEnum):
    """brain: R1, R2, R4b, R7, Dreamer. tool: R3, R4a. R4b is never weaker than R2."""

    BRAIN = "brain"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """One shape that an answer may have: the JSON of `schema`, then a fenced block or none.

    `fence` None: no block. Else a block is required, and this is its info string ("python", or "" for none).
    Servers that take grammars hold a model to one of the question's forms.
    """

    schema: type[BaseModel]
    fence: str | None = None


class Question(NamedTuple, Generic[T]):
    """One call. `contract` is the JSON schema's name; `schema` the type that the answer must have.

    With `body_field`, the answer is a short JSON object that may be followed by a fenced block, whose text
    becomes that (string) field: code in a JSON string breaks small models. `forms` narrows that further.
    `variant` 0 is greedy; a higher number asks for another answer to the same question (temperature, seed).
    """

    contract: str
    schema: type[T]
    system: str
    user: str
    tier: Tier
    body_field: str | None = None
    forms: tuple[AnswerForm, ...] = ()
    max_tokens: int = 1_024
    variant: int = 0


class Answer(NamedTuple, Generic[T]):
    """A valid value, the text it came from, and what it cost.

    `small`: the model is known to be a small one (see `artoo.llm.request.SMALL_BYTES`), whose figures deserve
    a second look. `billed`, `money`: as in ModelCalled.
    """

    value: T
    text: str
    model: str
    usage: Usage
    duration_ms: int
    wire: str
    requests: int = 1
    repaired: bool = False
    small: bool = False
    billed: int = 1
    money: float | None = None


class Model(Protocol):
    """Answers questions. One per task: it knows the task's budget."""

    async def ask(self, question: Question[T]) -> Answer[T]:
        """Raises ModelUnreachable, ModelRefused, ModelAnswerInvalid or BudgetExhausted."""
        ...
