"""Records for log, Auditor and user interfaces, such as model calls with usage and refused routes.

They have no recipient.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pydantic import Field

from artoo.contracts.base import Contract
from artoo.contracts.conversation import Message, ModelTurn, Took
from artoo.contracts.roles import Role


class Usage(Contract):
    """The tokens of one call, as counted by the server, or estimated by artoo if `estimated`."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False


class ModelFailure(Contract):
    """The kind of error with which a model call ended, so that a replay can raise the same error.

    `status` is the HTTP status of a refusal; `budget` names the spent budget."""

    nature: Literal["unreachable", "refused", "overflow", "invalid", "budget", "other"]
    status: int = 0
    budget: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The cost of a model call, whether it succeeded or failed. The fields have the same meaning as in
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
    """The complete record of one language model call, from which it can be replayed. `error` is set if it failed.

    `wire` is the method by which structure was requested (json_schema, forced_tool, json_object, prompted).
    `requests` counts HTTP requests including retries and the repair; `billed` counts those that may have cost
    something, and `money` is their cost (None: no price is known). `small` and `variant` are as in ports.model;
    `failure` is the kind of `error`; `images` are the SHA-256 hashes of the images in the prompt. In a
    conversation, `added` are the messages since its last call (all messages at its first), and `turn` is the
    model's output; `user` is then empty, and `system` is empty except at the first call."""

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
        """Return the new part of the model's input: the prompt, or the messages that were added."""
        return self.user or "\n\n".join(each.text for each in self.added if not isinstance(each, Took))


def spent_by(asked: Spent | ModelCalled) -> dict[str, Any]:
    """Return the cost of a model call as the fields that an answer, an error and the log have in common."""
    return {one.name: getattr(asked, one.name) for one in fields(Spent)}


class RouteViolation(Contract):
    """A record that a port refused a message. The bus publishes it for the Auditor."""

    offender: Role
    refused_kind: str
    reason: str


class MessagesDropped(Contract):
    """A record that a slow subscriber missed `count` messages in one burst. The bus publishes it."""

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
