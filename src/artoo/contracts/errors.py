"""All error classes of artoo as a tree, with the exit code of each.

    ArtooError ├── ConfigurationError      the operator set something wrong; nothing was started         exit 2 │
    └── TaskRunning         the task runs already, here or in another process             exit 2 ├── ModelError a
    language model could not be used │   ├── ModelUnreachable    no server, no network, no model file exit 3 │
    ├── ModelRefused the server refused the request (4xx) exit 3 │   │   └── ContextOverflow the prompt is longer
    than the model's window; compact and ask again │   └── ModelAnswerInvalid  the answer does not fit its
    contract, even after a repair     role failure ├── BudgetExhausted         calls, tokens, money or time are
    spent; the task delivers what it has ├── ProtocolError a role broke the rules of the stream │ ├── RouteRefused
    a role tried to publish a kind that it may not publish │   ├── InboxOverflow       a role could not keep up;
    its task fails rather than lose a message │   ├── StreamClosed        a closed port or subscription was read;
    nothing more will come │   └── MessageUnreadable   a line of a log is not a message that this version can read
    ├── ToolError               a tool could not do what it was asked; becomes a ToolCall record ├── SandboxError
    the command could not be contained; it was not run, or not applied ├── MemoryStoreError        shared memory
    is unusable; the task goes on without it ├── ActivityStoreError the standing agents' database is unusable;
    nothing of the change was made │   ├── StoreAway           the shared store cannot be reached now; trying
    again may help │   └── StoreRefused        this machine's role may not do that in the shared store ├──
    GovernanceRefused       the rules of the board forbid a move; the task stays as it was │   ├── MoveRefused
    no such transition, or no such task │   ├── ActorRefused this actor may not make this move │   └── ClaimLost
    the claim on the task or letter has expired or moved ├── ForeignRefused a foreign agent's request is outside
    the operator's policy ├── MailRefused a letter was not accepted; its sender gets the reason └──
    IdentityRefused         an agent's identity is not the accepted one; the agent stops

Each message says what is wrong, where, and what to do about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from artoo.contracts.events import Spent


class ArtooError(Exception):
    """The base class of all errors that artoo raises on purpose."""


class ConfigurationError(ArtooError):
    """Raised if a setting, an argument or a file of the operator is wrong.

    Nothing was started, so nothing was spent."""


class TaskRunning(ConfigurationError):
    """Raised if a task that is to be resumed or undone is still running, in this process or another one.

    Nothing was started.
    """


class ModelError(ArtooError):
    """Raised if a call of a language model failed.

    `spent` is the cost of the attempt that failed."""

    spent: Spent | None = None


class ModelUnreachable(ModelError):
    """Raised if the model gave no answer. The reason is that there is no server, network or model on disk, or that
    all retries ended in a timeout or an error 5xx.

    `transient`: true if another attempt may succeed, for example after a lost connection or a timeout. `sent` is
    False if it is certain that the request never reached a server, so that it cost nothing."""

    def __init__(self, message: str, *, transient: bool = False, sent: bool = True) -> None:
        super().__init__(message)
        self.transient = transient
        self.sent = sent


class ModelRefused(ModelError):
    """Raised if the server refused the request, for example because of the authentication, an unknown model, or a
    bad request."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status

    @property
    def of_this_prompt(self) -> bool:
        """Return whether the server refused only this prompt (too long, filtered, declined) and may answer
        others."""
        return self.status in (200, 400, 413, 422)


class ContextOverflow(ModelRefused):
    """Raised if the prompt does not fit the model's context window."""


class ModelAnswerInvalid(ModelError):
    """Raised if the answer is not valid for its contract, even after one repair. `answer` is the text of the
    answer."""

    def __init__(self, message: str, *, answer: str) -> None:
        super().__init__(message)
        self.answer = answer


class BudgetExhausted(ArtooError):
    """Raised if a budget of the task (calls, tokens, time, money) is used up, so that no more model calls are
    allowed.

    `spent` is the cost of the earlier requests, if the question needed more than one request."""

    spent: Spent | None = None

    def __init__(self, message: str, *, budget: str) -> None:
        super().__init__(message)
        self.budget = budget


class ProtocolError(ArtooError):
    """Raised if a role violates the rules of the stream."""


class RouteRefused(ProtocolError):
    """Raised if a role tries to publish a kind of message that the table of routes does not allow it to publish."""


class InboxOverflow(ProtocolError):
    """Raised if a role did not read its inbox fast enough. The task then fails, because otherwise a control message
    would be lost."""


class StreamClosed(ProtocolError):
    """Raised if the reader of a port or a subscription has read everything and the port or subscription is
    closed."""


class MessageUnreadable(ProtocolError):
    """Raised if a line from a log, a spool file or the network is not a message that this version can read.

    Readers skip such a line and report it."""


class ToolError(ArtooError):
    """Raised if a tool could not do what was requested.

    The executor is shown the error, and it is recorded in a ToolCall."""


class SandboxError(ArtooError):
    """Raised if a command could not be confined, or if its effects could not be read. None of its effects is
    applied."""


class NotLogged(ArtooError):
    """Raised if the log of a task cannot be written, because the disk is full or a limit is reached. The operation
    that was to be logged is not done."""


class MemoryStoreError(ArtooError):
    """Raised if the shared memory cannot be opened, read or written. The task continues without memory."""


class ActivityStoreError(ArtooError):
    """Raised if the database of the standing agents cannot be opened, read or written.

    A write that was interrupted has no effect."""


class StoreAway(ActivityStoreError):
    """Raised if the store that several machines share cannot be reached at this time.

    Work that is running continues, but no new work is started."""


class StoreRefused(ActivityStoreError):
    """Raised if this machine's role in the shared store has no permission for an operation.

    Nothing was changed.
    """


class GovernanceRefused(ArtooError):
    """Raised if the rules of the board forbid the requested operation. The task is not changed."""


class MoveRefused(GovernanceRefused):
    """Raised if the state machine does not allow a move, or if the board has no such task."""


class ActorRefused(GovernanceRefused):
    """Raised if an actor may not make this move. Its level of trust is too low, the task belongs to another agent,
    or the submission is its own."""


class ClaimLost(GovernanceRefused):
    """Raised if a claim on a task or a letter has ended, because it expired, was released, or was taken over by
    another agent."""


class ForeignRefused(ArtooError):
    """Raised if the operator's policy does not permit the request of a foreign agent, or if the request is no
    longer possible. Nothing was started.

    The foreign agent reads the text of the error, so the text must not contain information about this machine."""


class QuotaSpent(ForeignRefused):
    """Raised if a foreign agent has reached the operator's limit for unfinished tasks or for messages.

    The agent may ask again later."""


class MailRefused(ArtooError):
    """Raised if a letter is not accepted, because it is too long, its recipient does not exist, or there is no room
    for it."""


class IdentityRefused(ArtooError):
    """Raised if an agent's identity file is not the one that the operator accepted.

    The agent stops until the operator accepts the file."""
