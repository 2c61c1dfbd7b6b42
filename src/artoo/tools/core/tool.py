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
"""Returns the current files of the workspace. It is called for every tool call, because the files change between
calls."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call, from which the registry makes a record.

    `output` may be longer than a record keeps. If a tool has already shortened it, `total_bytes` (of both streams)
    and `truncated` are set. The other fields are the same as in `ToolCall`.
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
    """One tool that a model can call. Before the tool runs, the registry validates the arguments by the tool's
    schema (`ports.arguments`)."""

    @property
    def spec(self) -> ToolSpec:
        """Return the description of the tool for the executor and the planner."""
        ...

    @property
    def wall_seconds(self) -> float:
        """Return the time limit of one call, after which the registry ends it."""
        ...

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        """Return the names under which a call is blocked and remembered: the name of the tool, or the programs of a
        shell call."""
        ...

    def target(self, arguments: Arguments) -> str:
        """Return the main input in a normal form, so that equal calls have equal targets. Never raises."""
        ...

    async def run(self, arguments: Arguments) -> Outcome:
        """Run the call. Raises ToolError with a message for the executor. Any other exception is a bug of the
        tool."""
        ...


class _HasSpec(Protocol):
    @property
    def spec(self) -> ToolSpec: ...


class CountsAsItself:
    """A tool whose only identity is its own name."""

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
