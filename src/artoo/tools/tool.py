"""What a tool is to the registry: a spec, what a call of it counts as, and the act itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import OUTPUT_KEPT, CallStatus, WithheldBy
from artoo.ports.tools import Parameter, ToolSpec

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
    process: str = ""
    overlapped: bool = False


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


def number(arguments: Arguments, name: str, default: float) -> float:
    """Return an optional argument that is a number, at least 0. Raises ToolError."""
    text = argument(arguments, name)
    value = _number(text) if text else default
    if value is None or value < 0:
        raise ToolError(f"{name} {text!r} is not a number of at least 0")
    return value


def flag(arguments: Arguments, name: str) -> bool:
    """Return an optional argument that is true or false; false if it is absent. Raises ToolError."""
    value = _flag(argument(arguments, name) or "false")
    if value is None:
        raise ToolError(f"{name} is true or false, not {argument(arguments, name)!r}")
    return value


def mistyped(parameter: Parameter, text: str) -> str:
    """Return what is wrong with the type of an argument; empty if nothing is."""
    if not text.strip():
        return ""
    if parameter.type == "number" and _number(text) is None:
        return f"{parameter.name!r} must be a number, not {text.strip()[:40]!r}"
    if parameter.type == "boolean" and _flag(text) is None:
        return f"{parameter.name!r} must be true or false, not {text.strip()[:40]!r}"
    return ""


_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _flag(text: str) -> bool | None:
    return _FLAGS.get(text.strip().casefold())


def _number(text: str) -> float | None:
    """Return a finite number; models write `120`, `120.0` and `120s`."""
    try:
        value = float(text.strip().removesuffix("s").strip())
    except ValueError:
        return None
    return value if math.isfinite(value) else None
