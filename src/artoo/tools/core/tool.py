"""The interface of a tool to the registry: a spec, the identity and target of a call, and the call itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus, WithheldBy
from artoo.ports.arguments import as_text
from artoo.ports.tools import Arguments, ToolSpec
from artoo.ports.workspace import Files

__all__ = ["Arguments", "Look", "Outcome", "Tool", "argument", "flag", "number"]

Look = Callable[[], Files]
"""Returns the files of the workspace as they are at this moment, because they change from call to call."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call, before the registry makes a record of it.

    `output` may be longer than a record keeps; `total_bytes` (both streams) is given when `output` is already cut,
    as is `truncated`. The other fields are those of `ToolCall`.
    """

    output: str = ""
    error_output: str = ""
    status: CallStatus = CallStatus.OK
    exit_code: int | None = None
    ran: str | None = None
    total_bytes: int | None = None
    truncated: bool = False
    result_count: int | None = None
    changes: tuple[str, ...] = ()
    bookkeeping: bool = False
    dropped: tuple[str, ...] = ()
    withheld_by: WithheldBy | None = None
    reason: str | None = None
    self_contained: bool = False
    process: str = ""
    overlapped: bool = False
    masked: bool = False


class Tool(Protocol):
    """One tool. Arguments reach it checked by its schema: see `ports.arguments`."""

    @property
    def spec(self) -> ToolSpec:
        """Return what the executor and the planner see."""
        ...

    @property
    def wall_seconds(self) -> float:
        """Return the longest time for one call; the registry ends it then."""
        ...

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        """Return the names of this use for blocking and memory: the tool's name; for the shell its programs."""
        ...

    def target(self, arguments: Arguments) -> str:
        """Return the main input in its normal form: equal calls have equal targets. Never raises."""
        ...

    async def run(self, arguments: Arguments) -> Outcome:
        """Make the call. Raises ToolError with a message for the executor; any other error is the tool's fault."""
        ...


class _HasSpec(Protocol):
    @property
    def spec(self) -> ToolSpec: ...


class CountsAsItself:
    """A tool whose every use counts as its name."""

    __slots__ = ()

    def identities(self: _HasSpec, arguments: Arguments) -> tuple[str, ...]:
        return (self.spec.name,)


def argument(arguments: Arguments, name: str, default: str = "") -> str:
    """Return an optional argument as text without surrounding blanks."""
    return as_text(arguments.get(name, default)).strip()


def number(arguments: Arguments, name: str, default: float) -> float:
    """Return an optional argument that is a number of at least 0. Raises ToolError."""
    value = arguments.get(name, default)
    if not isinstance(value, int | float) or value < 0:
        raise ToolError(f"{name} must be a number of at least 0, not {as_text(value)!r}")
    return value


def flag(arguments: Arguments, name: str) -> bool:
    """Return an optional argument that is true or false; false if it is absent."""
    return arguments.get(name) is True
