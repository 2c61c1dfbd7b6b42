"""The user's own functions as tools."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import pytest
from tool_doubles import StillClock

from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.errors import ConfigurationError
from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import MustNot
from artoo.testing.asking import AskPerson
from artoo.tools.approval.gate import Gate
from artoo.tools.core.default_tools import own_tools
from artoo.tools.core.function_tools import text_of, tool, user_tool
from artoo.tools.core.registry import Registry, SubTaskToolbox


async def yes(request: ConfirmationRequest) -> Consent:
    return Consent.TASK


def toolbox_of(*functions: Callable[..., object]) -> SubTaskToolbox:
    tools = own_tools(functions, Gate(AskPerson(yes)))
    return Registry(tools, StillClock()).toolbox("s", MustNot())


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: float


async def test_a_plain_function_becomes_a_tool() -> None:
    """Name, first paragraph of the documentation and parameters are what a model sees."""

    @tool
    def weather(city: str, days: int = 3) -> str:
        """Forecast for a city.

        Everything else is for people.
        """
        return f"{city} {days + 1}"

    spec = user_tool(weather).spec
    assert (spec.name, spec.description) == ("weather", "Forecast for a city.")
    assert [(one.name, one.required) for one in spec.parameters] == [("city", True), ("days", False)]
    assert spec.json_schema() == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "text"},
            "days": {"type": "integer", "description": "int, default 3"},
        },
        "required": ["city"],
    }
    assert (spec.reads, spec.writes) == (True, False)
    box = toolbox_of(weather)
    assert (await box.call("weather", {"city": "Rome", "days": "4"})).output == "Rome 5"
    assert (await box.call("weather", {"city": "Oslo", "days": 1})).output == "Oslo 2"
    assert weather("Rome") == "Rome 4"


async def test_arguments_are_read_as_their_types() -> None:
    """Text becomes numbers, choices, enumerations, lists and objects; what does not fit is explained."""

    @tool
    def takes(
        number: float,
        flag: bool,
        mode: Literal["fast", "slow"],
        colour: Colour,
        items: list[int],
        point: Point,
        maybe: int | None = None,
    ) -> str:
        """Takes everything."""
        return repr((number, flag, mode, colour, items, point, maybe))

    box = toolbox_of(takes)
    good = {
        "number": "2.5",
        "flag": "true",
        "mode": "fast",
        "colour": "red",
        "items": "[1, 2]",
        "point": '{"x": 1, "y": 2.5}',
        "maybe": "7",
    }
    assert (await box.call("takes", good)).output == repr((2.5, True, "fast", Colour.RED, [1, 2], Point(1, 2.5), 7))
    for name, bad in (
        ("number", "many"),
        ("mode", "medium"),
        ("items", "[a"),
        ("point", "{}"),
        ("colour", "green"),
    ):
        call = await box.call("takes", {**good, name: bad})
        assert call.status in (CallStatus.REFUSED, CallStatus.ERROR)
        assert name in (call.reason or "") and bad in (call.reason or "")


class Calendar:
    """What a person's program has: objects with methods."""

    def __init__(self) -> None:
        self.asked = 0

    @tool(name="on_day", description="What is on a day", writes=True, asks=False, seconds=9)
    def at(self, day: str) -> str:
        self.asked += 1
        return f"{self.asked}: nothing on {day}"

    def plain(self, day: str) -> str:
        """What is on a day"""
        return f"plain {day}"


async def test_a_method_is_given_bound() -> None:
    """What was marked in the class holds of the bound one, which has no `self` to be given."""
    mine, other = Calendar(), Calendar()
    made = user_tool(mine.at)
    assert (made.name, made.spec.description, made.wall_seconds) == ("on_day", "What is on a day", 9)
    assert (made.effects.writes, made.effects.asks) == (True, False)
    assert (await toolbox_of(mine.at).call("on_day", {"day": "monday"})).output == "1: nothing on monday"
    assert (await toolbox_of(mine.plain).call("plain", {"day": "monday"})).output == "plain monday"
    assert (mine.asked, other.asked) == (1, 0)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, ""),
        ("as it is", "as it is"),
        (b"b\xff", "b\ufffd"),
        ({"a": [1, 2.5, None]}, '{"a":[1,2.5,null]}'),
        (Point(1, 2.0), '{"x":1,"y":2.0}'),
        (Colour.RED, '"red"'),
        (7, "7"),
        ("数据", "数据"),
    ],
)
def test_results_become_text(result: object, text: str) -> None:
    """Text stays, nothing is nothing, the rest is JSON."""
    assert text_of(result) == text


def _positional(a: str, /) -> None:
    """Positional."""


def _starred(*names: str) -> None:
    """Starred."""


def _keywords(**names: str) -> None:
    """Keywords."""


def _undocumented(a: str) -> None: ...


def _odd(a: asyncio.Event) -> None:
    """Odd."""


def _unknown(a: object) -> None:
    """Unknown."""


_unknown.__annotations__["a"] = "Missing"


def _yields(a: str) -> Generator[str]:
    """Yields."""
    yield a


def _named_badly(a: str) -> None:
    """A name with a blank."""


_named_badly.__name__ = "two words"


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (_positional, "cannot be given by name"),
        (_starred, "cannot be given by name"),
        (_keywords, "cannot be given by name"),
        (_undocumented, "say what it does"),
        (_odd, "cannot be made from text"),
        (_unknown, "its signature cannot be read"),
        (print, "cannot be"),
        (_yields, "let it return a list"),
        (_named_badly, "a tool's name is letters"),
    ],
)
def test_a_signature_that_no_model_can_call_is_refused_at_once(function: Callable[..., object], says: str) -> None:
    """The mistake is named where it is made, not when a model calls it."""
    with pytest.raises(ConfigurationError, match=says):
        tool(function)


async def test_tools_that_write_ask_first_unless_told_otherwise() -> None:
    """`writes` asks by default; `asks` decides when it is given."""
    asked: list[str] = []

    async def no(request: ConfirmationRequest) -> Consent:
        asked.append(request.title)
        return Consent.NO

    @tool(writes=True)
    def careful(text: str) -> str:
        """Writes."""
        return text

    @tool(name="bold", description="Writes too", writes=True, asks=False)
    def other(text: str) -> str:
        return text

    @tool(asks=True)
    def shy(text: str) -> str:
        """Reads, and asks."""
        return text

    registry = Registry(own_tools([careful, other, shy], Gate(AskPerson(no))), StillClock())
    assert [spec.writes for spec in registry.specs] == [True, True, False]
    box = registry.toolbox("s", MustNot())
    statuses = [(await box.call(name, {"text": "x"})).status for name in ("careful", "bold", "shy")]
    assert statuses == [CallStatus.REFUSED, CallStatus.OK, CallStatus.REFUSED]
    assert asked == ["tool careful", "tool shy"]


async def test_a_generator_is_no_result() -> None:
    """It is not read, since it may have no end, and what it raises would be lost."""

    @tool
    def endless() -> object:
        """Return a generator."""
        return (1 // number for number in range(1))

    call = await toolbox_of(endless).call("endless", {})
    assert call.status is CallStatus.ERROR and "let it return a list" in (call.reason or "")


async def test_a_function_that_never_returns_is_left_behind() -> None:
    """The call ends at its limit although the thread goes on."""
    release = threading.Event()

    @tool(seconds=0.05)
    def stuck() -> None:
        """Never returns."""
        release.wait(20)

    call = await toolbox_of(stuck).call("stuck", {})
    release.set()
    assert call.status is CallStatus.TIMEOUT


async def test_a_function_that_exits_or_is_cancelled_is_a_failed_call() -> None:
    """Neither ends the loop nor the call that waits, in a thread as in the loop."""

    @tool
    def leaves() -> None:
        """Exits."""
        sys.exit(3)

    @tool
    def gives_up() -> None:
        """Says that it was cancelled."""
        raise asyncio.CancelledError

    @tool
    async def leaves_here() -> None:
        """Exits in the loop."""
        sys.exit(4)

    @tool
    async def waits_for_nothing() -> None:
        """Awaits a task of its own that it has cancelled."""
        other = asyncio.ensure_future(asyncio.sleep(60))
        other.cancel()
        await other

    @tool
    async def cancels_itself() -> None:
        """Cancels the task that it runs in."""
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(60)

    box = toolbox_of(leaves, gives_up, leaves_here, waits_for_nothing, cancels_itself)
    cancelled = "CancelledError: it, or what it waited for, was cancelled"
    for name, reason in (
        ("leaves", "RuntimeError: the function raised SystemExit: 3"),
        ("gives_up", "RuntimeError: the function raised CancelledError"),
        ("leaves_here", "SystemExit: 4"),
        ("waits_for_nothing", cancelled),
        ("cancels_itself", cancelled),
    ):
        call = await box.call(name, {})
        assert (call.status, call.reason) == (CallStatus.ERROR, reason)
