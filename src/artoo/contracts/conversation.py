"""The messages of a conversation with a model, its turn, tool requests, and the names of own tools.

Reference: SPEC section 3.1.

A conversation only grows. Sent messages are never rendered again, so that a server's prompt cache covers
everything except the newest messages. All wires and the text dialect produce the same `ModelTurn`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from artoo.contracts.base import Contract
from artoo.contracts.request import AttachedImage

# Tools of the executor itself. They change nothing on the machine, and their calls are not recorded.
OWN_TOOLS = frozenset({"deliver", "cannot", "recall", "update_plan", "ask_person"})


class ToolRequest(Contract):
    """A tool call that a model asks for.

    `id` links the result to the request; it is unique within a conversation. `problem` says why the arguments
    could not be read; then `arguments` is empty, the call is not made, and its result is the problem.
    """

    id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    problem: str = ""


class ModelTurn(Contract):
    """The output of a model in one call: text, and any number of tool calls in the order given.

    Without tool calls the text is the answer. `reasoning` holds the wire's own reasoning items, which are sent
    back unchanged and never shown. `cut`: the answer reached its token limit."""

    text: str = ""
    calls: tuple[ToolRequest, ...] = ()
    reasoning: JsonValue = None
    cut: bool = False


class Said(Contract):
    """A message of the user's side: the assignment, a correction, a steering message, a notice.

    `source` says who wrote it; models see only the text. `images` are shown after the text.
    """

    message: Literal["said"] = "said"
    text: str
    source: Literal["request", "correction", "user", "control", "notice"] = "notice"
    images: tuple[AttachedImage, ...] = ()


class Took(Contract):
    """A turn that the model took."""

    message: Literal["took"] = "took"
    turn: ModelTurn


class Returned(Contract):
    """The result of one tool call, as the model reads it. `call_id` is the ToolRequest's id, `name` the tool's
    name.

    If the call was recorded, the text begins with its number (`[7]`). `images` are shown after the text."""

    message: Literal["returned"] = "returned"
    call_id: str
    name: str
    text: str
    images: tuple[AttachedImage, ...] = ()


Message = Annotated[Said | Took | Returned, Field(discriminator="message")]
"""One message of a conversation after the system prompt."""


class Compacted(Contract):
    """A record by R3 that a conversation was shortened, because it filled its share of the window.

    `messages` is the whole shortened conversation; `tokens_before` and `tokens_after` are estimates.
    `summarised`: a model summarised older turns; otherwise only outputs of older calls were replaced."""

    subtask_id: str
    attempt: int = Field(ge=1)
    messages: tuple[Message, ...]
    tokens_before: int
    tokens_after: int
    summarised: bool = False


class TextDelta(Contract):
    """A piece of a model's text while it is streamed. It is only displayed: it is not logged and may be lost.

    `contract` names the contract that the model was asked for; the following ModelCalled has the whole text."""

    contract: str
    text: str
    subtask_id: str | None = None


class ChecklistItem(Contract):
    """One line of the visible checklist."""

    text: str
    status: Literal["pending", "in_progress", "done"] = "pending"


class ChecklistUpdated(Contract):
    """A record by R3 that the executor changed its checklist (`update_plan`)."""

    subtask_id: str
    items: tuple[ChecklistItem, ...]
