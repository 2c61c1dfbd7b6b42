"""Define a conversation with a model: its messages, and the turn that the model takes (SPEC section 3.1).

A conversation only grows. Nothing that was sent is rendered again, so that a server's prompt cache covers
everything but the newest messages. All wires and the text dialect produce the same `ModelTurn`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from artoo.contracts.base import Contract
from artoo.contracts.images import AttachedImage

# Tools of the executor itself. They touch nothing on the machine, and their calls have no record.
OWN_TOOLS = frozenset({"deliver", "cannot", "recall", "update_plan", "ask_person"})


class ToolRequest(Contract):
    """A tool call that a model asks for.

    `id` ties the result to the request; it is unique within a conversation. `problem` says why the arguments could
    not be read (then `arguments` is empty and the call is answered with the problem, never made).
    """

    id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    problem: str = ""


class ModelTurn(Contract):
    """Carry the output of a model in one call: text, and any number of tool calls in the order given.

    Without tool calls the text is the answer. `reasoning` holds the wire's own reasoning items, which are sent back
    as they came and never shown. `cut`: the answer reached its token limit.
    """

    text: str = ""
    calls: tuple[ToolRequest, ...] = ()
    reasoning: JsonValue = None
    cut: bool = False


class Said(Contract):
    """A message of the user's side: the assignment, a correction, a steering message, a notice.

    `source` says who wrote it; models see the text alone. `images` are shown after the text.
    """

    message: Literal["said"] = "said"
    text: str
    source: Literal["request", "correction", "user", "control", "notice"] = "notice"
    images: tuple[AttachedImage, ...] = ()


class Took(Contract):
    """Carry a turn that the model took."""

    message: Literal["took"] = "took"
    turn: ModelTurn


class Returned(Contract):
    """Carry the result of one tool call, as the model reads it. `call_id` is the ToolRequest's, `name` the tool's.

    The text begins with the call's number (`[7]`) where the call was recorded. `images` are shown after the text.
    """

    message: Literal["returned"] = "returned"
    call_id: str
    name: str
    text: str
    images: tuple[AttachedImage, ...] = ()


Message = Annotated[Said | Took | Returned, Field(discriminator="message")]
"""One message of a conversation after the system prompt."""


class Compacted(Contract):
    """Report that a conversation was shortened because it filled its share of the window. R3's record.

    `messages` is the whole conversation as it goes on from here; `tokens_before` and `tokens_after` are estimates.
    `summarised`: a model summarised older turns; else only outputs of older calls were replaced.
    """

    subtask_id: str
    attempt: int = Field(ge=1)
    messages: tuple[Message, ...]
    tokens_before: int
    tokens_after: int
    summarised: bool = False


class TextDelta(Contract):
    """Carry the words of a model as they come. For displays only: no log keeps them, and losing some never matters.

    `contract` names what the model was asked for; the whole text is in the ModelCalled that follows.
    """

    contract: str
    text: str
    subtask_id: str | None = None


class ChecklistItem(Contract):
    """One line of the visible checklist."""

    text: str
    status: Literal["pending", "in_progress", "done"] = "pending"


class ChecklistUpdated(Contract):
    """Report that the executor changed its checklist (`update_plan`). R3's record."""

    subtask_id: str
    items: tuple[ChecklistItem, ...]
