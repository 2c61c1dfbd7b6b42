"""The messages of a conversation with a model, its turn, tool requests, and the names of own tools.

Reference: SPEC section 3.1.

A conversation only grows. A message that was sent is never rendered again. The prompt cache of a server therefore
covers everything except the newest messages. Every wire, and the text dialect, results in the same `ModelTurn`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from artoo.contracts.base import Contract
from artoo.contracts.request import AttachedImage

# Tools of the executor itself. They change nothing on the machine, and their calls are not recorded.
OWN_TOOLS = frozenset({"deliver", "cannot", "recall", "update_plan", "ask_person"})


class ToolRequest(Contract):
    """A tool call that a model has requested.

    `id` links the result to the request. It is unique within a conversation. `problem` says why the arguments could
    not be parsed. `arguments` is then empty, the call is not made, and the problem is its result.
    """

    id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    problem: str = ""


class ModelTurn(Contract):
    """The output of a model in one call, which consists of text and of any number of tool calls in their order.

    If there are no tool calls, the text is the answer. `reasoning` contains the reasoning items in the form of the
    wire. They are sent back unchanged and never shown. `cut`: true if the answer reached its token limit."""

    text: str = ""
    calls: tuple[ToolRequest, ...] = ()
    reasoning: JsonValue = None
    cut: bool = False


class Said(Contract):
    """A message in the user's role, such as the assignment, a correction, a message that steers the model, or a
    notice.

    `source` says who wrote it. The model sees only the text. `images` are shown after the text.
    """

    message: Literal["said"] = "said"
    text: str
    source: Literal["request", "correction", "user", "control", "notice"] = "notice"
    images: tuple[AttachedImage, ...] = ()


class Took(Contract):
    """A turn of the model in the conversation."""

    message: Literal["took"] = "took"
    turn: ModelTurn


class Returned(Contract):
    """The result of one tool call in the form in which the model reads it. `call_id` is the id of the ToolRequest,
    and `name` the name of the tool.

    If the call was recorded, the text begins with its number, for example `[7]`. `images` are shown after the
    text."""

    message: Literal["returned"] = "returned"
    call_id: str
    name: str
    text: str
    images: tuple[AttachedImage, ...] = ()


Message = Annotated[Said | Took | Returned, Field(discriminator="message")]
"""One message of a conversation. The system prompt is not one of them."""


class Compacted(Contract):
    """A record by R3 (executor) that a conversation was shortened, because it filled its share of the window.

    `messages` is the whole shortened conversation. `tokens_before` and `tokens_after` are estimates. `summarised`:
    true if a model summarised older turns. Otherwise only the outputs of older calls were replaced."""

    subtask_id: str
    attempt: int = Field(ge=1)
    messages: tuple[Message, ...]
    tokens_before: int
    tokens_after: int
    summarised: bool = False


class TextDelta(Contract):
    """A part of a model's text that is published while it is streamed. It is only for displays. It is not logged,
    and may be lost.

    `contract` is the contract for which the model was asked. The ModelCalled that follows contains the whole
    text."""

    contract: str
    text: str
    subtask_id: str | None = None


class ChecklistItem(Contract):
    """One line of the checklist that the user sees."""

    text: str
    status: Literal["pending", "in_progress", "done"] = "pending"


class ChecklistUpdated(Contract):
    """A record by R3 (executor) that the executor has changed its checklist (`update_plan`)."""

    subtask_id: str
    items: tuple[ChecklistItem, ...]
