"""The interface of a tool (spec, identity, target, call), its outcome, and helpers for arguments."""

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
"""Returns the current files of the workspace, because they change from call to call."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call, from which the registry makes a record.

    `output` may be longer than a record keeps. If it is already cut, `total_bytes` (both streams) and `truncated`
    are set. The other fields are those of `ToolCall`.
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
    """One tool. The registry validates the arguments by its schema (`ports.arguments`) before it runs the tool."""

    @property
    def spec(self) -> ToolSpec:
        """Return the description of the tool for executor and planner."""
        ...

    @property
    def wall_seconds(self) -> float:
        """Return the time limit of one call, after which the registry ends it."""
        ...

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        """Return the names of a call for blocking and memory: the tool's name, or the programs of a shell call."""
        ...

    def target(self, arguments: Arguments) -> str:
        """Return the main input in a normal form, so that equal calls have equal targets. Never raises."""
        ...

    async def run(self, arguments: Arguments) -> Outcome:
        """Run the call. Raises ToolError with a message for the executor; other errors are bugs of the tool."""
        ...


class _HasSpec(Protocol):
    @property
    def spec(self) -> ToolSpec: ...


class CountsAsItself:
    """A tool whose only identity is its name."""

    __slots__ = ()

    def identities(self: _HasSpec, arguments: Arguments) -> tuple[str, ...]:
        return (self.spec.name,)


def argument(arguments: Arguments, name: str, default: str = "") -> str:
    """Return an optional argument as text, without surrounding blanks."""
    return as_text(arguments.get(name, default)).strip()


def number(arguments: Arguments, name: str, default: float) -> float:
    """Return an optional argument that must be a number of at least 0. Raises ToolError."""
    value = arguments.get(name, default)
    if not isinstance(value, int | float) or value < 0:
        raise ToolError(f"{name} must be a number of at least 0, not {as_text(value)!r}")
    return value


def flag(arguments: Arguments, name: str) -> bool:
    """Return an optional boolean argument; false if it is absent."""
    return arguments.get(name) is True
