"""Records for log, Auditor and user interfaces, such as model calls with usage and refused routes.

No role receives these messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.conversation import Message, ModelTurn, Took
from artoo.contracts.roles import Role


class Usage(Contract):
    """The tokens of one call. The server counted them, or artoo estimated them if `estimated` is true."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False


class ModelFailure(Contract):
    """The kind of error with which a model call ended. With it, a replay can raise the same error.

    `status` is the HTTP status of a refusal. `budget` is the name of the budget that is used up."""

    nature: Literal["unreachable", "refused", "overflow", "invalid", "budget", "other"]
    status: int = 0
    budget: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The cost of a model call, whether the call succeeded or failed. The fields have the same meaning as in
    ModelCalled."""

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
    """The complete record of one call of a language model. The call can be replayed from it. `error` is set if it
    failed.

    `wire` is the method by which a structured answer was requested (json_schema, forced_tool, json_object,
    prompted). `requests` counts the HTTP requests, including retries and the repair. `billed` counts those that may
    have cost something, and `money` is their cost (None: the price is not known). `small` and `variant` have the
    same meaning as in ports.model. `failure` is the kind of `error`. `images` are the SHA-256 hashes of the images
    in the prompt. In a conversation, `added` are the messages since its last call (all messages at the first call),
    and `turn` is the output of the model. `user` is then empty, and `system` is empty except at the first call."""

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
        """Return the part of the model's input that is new. It is the prompt, or the messages that were added."""
        return self.user or "\n\n".join(each.text for each in self.added if not isinstance(each, Took))


def spent_by(asked: Spent | ModelCalled) -> dict[str, Any]:
    """Return the cost of a model call, with the fields that an answer, an error and the log have in common."""
    return {one.name: getattr(asked, one.name) for one in fields(Spent)}


class RouteViolation(Contract):
    """A record that a port has refused a message. The bus publishes this record for the Auditor."""

    offender: Role
    refused_kind: str
    reason: str


class MessagesDropped(Contract):
    """A record that a slow subscriber has missed `count` messages in one burst. The bus publishes it."""

    subscriber: str
    count: int


class NetworkUsed(Contract):
    """A record that one connection of a command ended, or that the egress proxy refused it.

    `host` is normalised (lower case, no trailing dot, addresses in standard form); if the command requested
    something that is no host, it is that text. `bytes_out` and `bytes_in` count the bytes between the proxy and
    the host, so 0 bytes out means that no data left the machine. `refused` says why the connection was refused or
    interrupted. `act` names the call (ToolStarted); it is empty if the connection belongs to no call."""

    act: str = ""
    host: str
    port: int = Field(ge=0, le=65535)
    bytes_out: int = Field(default=0, ge=0)
    bytes_in: int = Field(default=0, ge=0)
    refused: str | None = None
