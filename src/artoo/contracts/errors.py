"""Every error that artoo raises on purpose, drawn as a tree.

    ArtooError
    ├── ConfigurationError      the operator set something wrong; nothing was started         exit 2
    ├── ModelError              a language model could not be used
    │   ├── ModelUnreachable    no server, no network, no model file                          exit 3
    │   ├── ModelRefused        the server answered, and the answer is no (4xx)               exit 3
    │   └── ModelAnswerInvalid  the answer does not fit its contract, even after a repair     role failure
    ├── BudgetExhausted         calls, tokens or time are spent; the task delivers what it has
    ├── ProtocolError           a role broke the rules of the stream
    │   ├── RouteRefused        a role tried to publish a kind that it may not publish
    │   └── InboxOverflow       a role could not keep up; its task fails rather than lose a message
    ├── ToolError               a tool could not do what it was asked; becomes a ToolCall record
    ├── SandboxError            the command could not be contained; it was not run, or not applied
    └── MemoryStoreError        shared memory is unusable; the task goes on without it

Each says what is wrong, where, and what to do about it.
"""

from __future__ import annotations


class ArtooError(Exception):
    """Base of all errors that artoo raises on purpose."""


class ConfigurationError(ArtooError):
    """A setting, an argument or a file of the operator's is wrong. Costs nothing: nothing was started."""


class ModelError(ArtooError):
    """A language model could not be used for a call."""


class ModelUnreachable(ModelError):
    """No answer at all: no server, no network, no model on disk, or only stalls and 5xx until retries ran out."""


class ModelRefused(ModelError):
    """The server answered with a refusal (authentication, unknown model, bad request)."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class ModelAnswerInvalid(ModelError):
    """The answer does not fit the contract, even after one repair. `answer` holds its text."""

    def __init__(self, message: str, *, answer: str) -> None:
        super().__init__(message)
        self.answer = answer


class BudgetExhausted(ArtooError):
    """A budget of the task (calls, tokens, time, money) is spent; nothing more may be asked of a model."""

    def __init__(self, message: str, *, budget: str) -> None:
        super().__init__(message)
        self.budget = budget


class ProtocolError(ArtooError):
    """A role broke the rules of the stream."""


class RouteRefused(ProtocolError):
    """A role tried to publish a kind that the table of routes does not allow it."""


class InboxOverflow(ProtocolError):
    """A role did not keep up with its inbox. Its task fails rather than lose a control message."""


class ToolError(ArtooError):
    """A tool could not do what it was asked. Shown to the executor, recorded as a ToolCall with an error status."""


class SandboxError(ArtooError):
    """A command could not be contained or its effects not read; nothing of it took effect."""


class MemoryStoreError(ArtooError):
    """Shared memory cannot be opened, read or written. The task goes on without memory."""
