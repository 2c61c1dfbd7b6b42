"""Define every error that artoo raises on purpose, drawn as a tree.

    ArtooError
    ├── ConfigurationError      the operator set something wrong; nothing was started         exit 2
    │   └── TaskRunning         the task runs already, here or in another process             exit 2
    ├── ModelError              a language model could not be used
    │   ├── ModelUnreachable    no server, no network, no model file                          exit 3
    │   ├── ModelRefused        the server answered, and the answer is no (4xx)               exit 3
    │   │   └── ContextOverflow the prompt is longer than the model's window; compact and ask again
    │   └── ModelAnswerInvalid  the answer does not fit its contract, even after a repair     role failure
    ├── BudgetExhausted         calls, tokens, money or time are spent; the task delivers what it has
    ├── ProtocolError           a role broke the rules of the stream
    │   ├── RouteRefused        a role tried to publish a kind that it may not publish
    │   ├── InboxOverflow       a role could not keep up; its task fails rather than lose a message
    │   ├── StreamClosed        a closed port or subscription was read; nothing more will come
    │   └── MessageUnreadable   a line of a log is not a message that this version can read
    ├── ToolError               a tool could not do what it was asked; becomes a ToolCall record
    ├── SandboxError            the command could not be contained; it was not run, or not applied
    ├── MemoryStoreError        shared memory is unusable; the task goes on without it
    ├── ActivityStoreError      the standing agents' database is unusable; nothing of the change was made
    │   ├── StoreAway           the shared store cannot be reached now; trying again may help
    │   └── StoreRefused        this machine's role may not do that in the shared store
    ├── GovernanceRefused       the rules of the board forbid a move; the task stays as it was
    │   ├── MoveRefused         no such transition, or no such task
    │   ├── ActorRefused        this actor may not make this move
    │   └── ClaimLost           the claim on the task or letter has expired or moved
    ├── ForeignRefused          a foreign agent's wish is outside the operator's policy; it is told why
    ├── MailRefused             a letter was not accepted; its sender is told why
    └── IdentityRefused         an agent's identity is not the accepted one; the agent stops

Each says what is wrong, where, and what to do about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from artoo.contracts.events import Spent


class ArtooError(Exception):
    """The base of all errors that artoo raises on purpose."""


class ConfigurationError(ArtooError):
    """Report that a setting, an argument or a file of the operator's is wrong.

    Costs nothing: nothing was started.
    """


class TaskRunning(ConfigurationError):
    """Report that a task is to be resumed or undone while it still runs, in this process or another.

    Nothing was started.
    """


class ModelError(ArtooError):
    """Report that a language model could not be used for a call.

    `spent` says what the attempt cost all the same.
    """

    spent: Spent | None = None


class ModelUnreachable(ModelError):
    """Report that the model gave no answer: no server, network or model on disk, or only stalls and 5xx until the
    last retry.

    `transient`: trying again may help (a lost connection, a stall). `sent` False: the request surely never
    reached a server, so it cost nothing.
    """

    def __init__(self, message: str, *, transient: bool = False, sent: bool = True) -> None:
        super().__init__(message)
        self.transient = transient
        self.sent = sent


class ModelRefused(ModelError):
    """Report that the server answered with a refusal (authentication, unknown model, bad request)."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status

    @property
    def of_this_prompt(self) -> bool:
        """Check whether this prompt alone is refused (too long, filtered, declined), and others may be answered."""
        return self.status in (200, 400, 413, 422)


class ContextOverflow(ModelRefused):
    """Report that the prompt does not fit the model's context window."""


class ModelAnswerInvalid(ModelError):
    """Report that the answer does not fit the contract, even after one repair. `answer` holds its text."""

    def __init__(self, message: str, *, answer: str) -> None:
        super().__init__(message)
        self.answer = answer


class BudgetExhausted(ArtooError):
    """Report that a budget of the task (calls, tokens, time, money) is spent; nothing more may be asked of a model.

    `spent`: what the question had used before, when it took more than one request.
    """

    spent: Spent | None = None

    def __init__(self, message: str, *, budget: str) -> None:
        super().__init__(message)
        self.budget = budget


class ProtocolError(ArtooError):
    """Report that a role broke the rules of the stream."""


class RouteRefused(ProtocolError):
    """Report that a role tried to publish a kind that the table of routes does not allow it."""


class InboxOverflow(ProtocolError):
    """Report that a role did not keep up with its inbox. Its task fails rather than lose a control message."""


class StreamClosed(ProtocolError):
    """Report that a port or subscription is closed and empty: nothing more will come. Ends its reader, costs
    nothing else.
    """


class MessageUnreadable(ProtocolError):
    """Report that a line of a log, spool or network is not a message of this version.

    Costs that line, and is reported.
    """


class ToolError(ArtooError):
    """Report that a tool could not do what it was asked.

    Shown to the executor, recorded as a ToolCall with an error status.
    """


class SandboxError(ArtooError):
    """Report that a command could not be contained or its effects not read; nothing of it took effect."""


class NotLogged(ArtooError):
    """Report that the log of a task cannot be written (disk full, limit reached): what was to take effect now does
    not.
    """


class MemoryStoreError(ArtooError):
    """Report that the shared memory cannot be opened, read or written. The task continues without memory."""


class ActivityStoreError(ArtooError):
    """Report that the standing agents' database cannot be opened, read or written.

    What was being written is not there.
    """


class StoreAway(ActivityStoreError):
    """Report that the store that several machines share cannot be reached now.

    What runs goes on; nothing new is begun.
    """


class StoreRefused(ActivityStoreError):
    """Report that the role with which this machine uses the shared store lacks the right to do that.

    Nothing was changed.
    """


class GovernanceRefused(ArtooError):
    """Report that the rules of the board forbid what was asked. Costs nothing: the task stays as it was."""


class MoveRefused(GovernanceRefused):
    """Report that the state machine knows no such transition, or the board no such task."""


class ActorRefused(GovernanceRefused):
    """Report that the actor may not make this move: no trust for it, not theirs, or their own submission."""


class ClaimLost(GovernanceRefused):
    """Report that a claim on a task or letter is over: it expired, was released, or went to another agent."""


class ForeignRefused(ArtooError):
    """Report that the request of a foreign agent is outside the operator's policy, or no longer possible. Nothing
    was started.

    It reads the text, so that nothing of this machine may stand there.
    """


class QuotaSpent(ForeignRefused):
    """Report that a foreign agent has as much at work, or has asked as often, as the operator allows.

    It may ask later.
    """


class MailRefused(ArtooError):
    """Report that a letter was not accepted: too long, no recipient of that name, or no room."""


class IdentityRefused(ArtooError):
    """Report that an agent's identity file is not the one that the operator accepted.

    The agent stops until they do.
    """
