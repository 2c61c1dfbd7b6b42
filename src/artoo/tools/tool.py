"""What a tool is to the registry: a spec, what a call of it counts as, and the act itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from artoo.contracts.execution import OUTPUT_KEPT, CallStatus, WithheldBy
from artoo.ports.tools import ToolSpec

Arguments = Mapping[str, str]
"""The arguments of a call: every value is text."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended, before the registry makes a record of it.

    `output` may be longer than a record keeps, which are `kept` characters of it; `total_bytes` (both streams) is
    given when `output` is already cut, as is `truncated`. The other fields are those of `ToolCall`.
    """

    output: str = ""
    kept: int = OUTPUT_KEPT
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


class Tool(Protocol):
    """One tool. Arguments reach it checked: all required ones are there, none is unknown."""

    @property
    def spec(self) -> ToolSpec:
        """What the executor and the planner see."""
        ...

    @property
    def wall_seconds(self) -> float:
        """The longest that one call may take; the registry ends it then."""
        ...

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        """What blocking and memory call this use: the tool's name; for the shell its programs."""
        ...

    def target(self, arguments: Arguments) -> str:
        """The main input in its normal form: equal acts have equal targets. Never raises."""
        ...

    async def run(self, arguments: Arguments) -> Outcome:
        """Does it. Raises ToolError with a message for the executor; any other error is the tool's own fault."""
        ...


def argument(arguments: Arguments, name: str, default: str = "") -> str:
    """An optional argument without surrounding blanks."""
    return arguments.get(name, default).strip()
