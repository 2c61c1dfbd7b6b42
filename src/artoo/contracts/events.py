"""Define records without a recipient, which make the stream complete for the log, the Auditor and the display."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.conversation import Message, ModelTurn, Took
from artoo.contracts.roles import Role


class Usage(Contract):
    """The tokens of one call, as the server counted them (estimated when it did not: `estimated`)."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False


class ModelFailure(Contract):
    """The kind of error that a model call ended with, so that a replay can raise the same.

    `status` is HTTP's, of a refusal; `budget` names the budget that was spent.
    """

    nature: Literal["unreachable", "refused", "overflow", "invalid", "budget", "other"]
    status: int = 0
    budget: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The cost of asking a model, whether it answered or failed. The fields are those of ModelCalled."""

    model: str = ""
    usage: Usage = field(default_factory=Usage)
    duration_ms: int = 0
    wire: str = ""
    requests: int = 1
    repaired: bool = False
    billed: int = 1
    money: float | None = None
    small: bool = False


class ModelCalled(Contract):
    """One language model call, whole: it can be replayed from this. `error` is set when it failed.

    `wire` says how structure was asked for (json_schema, forced_tool, json_object, prompted);
    `requests` counts HTTP requests including retries and the repair; `billed` those that may have cost something,
    and `money` is what they cost (None: no price is known). `small` and `variant` as in ports.model; `failure` is
    the kind of `error`; `images` are the SHA-256 of those that the model was shown.
    Of a conversation, `added` are the messages since its last call (all of them at its first), `turn` is what the
    model said; `user` is empty then, and `system` is empty but at the first call.
    """

    role: Role
    contract: str
    tier: Literal["brain", "tool"]
    model: str
    system: str
    user: str
    answer: str = ""
    usage: Usage = Field(default_factory=Usage)
    duration_ms: int = 0
    wire: str = ""
    requests: int = 1
    repaired: bool = False
    error: str | None = None
    billed: int = 1
    money: float | None = None
    small: bool = False
    variant: int = 0
    failure: ModelFailure | None = None
    images: tuple[str, ...] = ()
    added: tuple[Message, ...] = ()
    turn: ModelTurn | None = None

    @property
    def asked(self) -> str:
        """Return what the model was asked, as far as it is new: the prompt, or the messages that were added."""
        return self.user or "\n\n".join(each.text for each in self.added if not isinstance(each, Took))


def spent_by(asked: Spent | ModelCalled) -> dict[str, Any]:
    """Return what asking a model took, by the fields that an answer, an error and the log have in common."""
    return {one.name: getattr(asked, one.name) for one in fields(Spent)}


class RouteViolation(Contract):
    """Report that a port refused a message. Published by the bus, for the Auditor."""

    offender: Role
    refused_kind: str
    reason: str


class MessagesDropped(Contract):
    """Report that a slow subscriber missed `count` messages in one burst. Published by the bus."""

    subscriber: str
    count: int
