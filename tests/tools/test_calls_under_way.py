"""Calls announce themselves at the moment from which they may take effect, and not before the log can know it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gate_world import Person
from tool_doubles import PlainWorkspace, StillClock, roots_in

from artoo.contracts.confirmation import Consent
from artoo.contracts.plan import MustNot
from artoo.ports.tools import Departure, Parameter, Ticket, ToolSpec
from artoo.testing.asking import AskPerson
from artoo.tools.approval.ask_first import Asking
from artoo.tools.approval.gate import Gate
from artoo.tools.core.default_tools import Shared, builtin_tools
from artoo.tools.core.registry import Registry, SubTaskToolbox
from artoo.tools.core.tool import Arguments, Outcome, Tool, argument
from artoo.workspace.changes.path_class import Places


@dataclass
class Said:
    """What was announced, what waited for the log, and what happened, in order."""

    story: list[str] = field(default_factory=list[str])
    departures: list[Departure] = field(default_factory=list[Departure])

    def ticket(self, act: str = "s/1") -> Ticket:
        def announce(departure: Departure) -> None:
            self.departures.append(departure)
            self.story.append(f"{act} {departure.effects}")

        return Ticket(act, announce)

    async def durable(self) -> None:
        self.story.append("kept")


@dataclass(frozen=True)
class Does:
    """A tool that does what a test wants."""

    act: Callable[[Arguments], Awaitable[Outcome]]
    writes: bool = False
    wall_seconds: float = 5.0

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("does", "does it", (Parameter("thing", "what"),), 50, writes=self.writes)

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return ("does",)

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "thing")

    async def run(self, arguments: Arguments) -> Outcome:
        return await self.act(arguments)


def box_of(said: Said, tools: Sequence[Tool], gate: Gate | None = None) -> SubTaskToolbox:
    return Registry(tools, StillClock(), gate=gate, durable=said.durable).toolbox("s", MustNot())


def doing(said: Said, *, writes: bool = False) -> Does:
    async def act(arguments: Arguments) -> Outcome:
        said.story.append("run")
        return Outcome(output="done")

    return Does(act, writes)


async def test_a_writer_that_nobody_holds_reaches_outside() -> None:
    """A tool that writes and neither asks nor stages may have done anything: the log knows before it runs."""
    said = Said()
    await box_of(said, [doing(said, writes=True)]).call("does", {"thing": "x"}, said.ticket())
    assert said.story == ["s/1 outside", "kept", "run"]
    assert len(said.departures[0].digest) == 64


async def test_consent_comes_before_the_announcement() -> None:
    """A tool that asks goes out when consent is there and in the log; the question names the act."""
    said = Said()
    person = Person([Consent.ONCE], meanwhile=lambda: said.story.append("asked"))
    box = box_of(said, [Asking(doing(said, writes=True), Gate(AskPerson(person)))])
    await box.call("does", {"thing": "x"}, said.ticket())
    assert said.story == ["asked", "kept", "s/1 outside", "kept", "run"]
    assert [question.act for question in person.asked] == ["s/1"]


def hands(said: Said, workspace: PlainWorkspace, person: Person) -> SubTaskToolbox:
    gate = Gate(AskPerson(person))
    places = Places.of(workspace.roots, workspace.roots.home / ".artoo")
    return box_of(said, builtin_tools(Shared.of(workspace, gate, places)), gate)


async def test_a_command_without_a_sandbox_is_outside_from_its_yes_on(tmp_path: Path) -> None:
    """It starts staged; after the yes, and only then, it is started again as one that reaches outside."""
    said = Said()
    person = Person([Consent.ONCE], meanwhile=lambda: said.story.append("asked"))
    box = hands(said, PlainWorkspace(roots_in(tmp_path), refuses=True, backend="landlock"), person)
    await box.call("shell", {"command": "echo hello"}, said.ticket())
    assert said.story == ["s/1 staged", "kept", "asked", "kept", "s/1 outside", "kept"]
    said.story.clear()
    await box.call("shell", {"command": "echo other"}, said.ticket("s/2"))
    assert said.story == ["s/2 staged", "kept", "asked", "kept"]


async def test_a_staged_call_is_logged_before_it_changes_the_workspace(tmp_path: Path) -> None:
    """A command or write waits for the log, so that a resumed task does not repeat it. A read waits for nothing."""
    said = Said()
    box = hands(said, PlainWorkspace(roots_in(tmp_path)), Person())
    await box.call("shell", {"command": "ls"}, said.ticket())
    await box.call("write_file", {"path": "made.txt", "content": "x"}, said.ticket("s/2"))
    await box.call("edit_file", {"path": "made.txt", "old": "x", "new": "y"}, said.ticket("s/3"))
    await box.call("read_file", {"path": "made.txt"}, said.ticket("s/4"))
    assert said.story == [*("s/1 staged", "kept"), *("s/2 staged", "kept"), *("s/3 staged", "kept"), "s/4 none"]
