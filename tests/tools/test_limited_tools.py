"""An agent has the tools that its identity leaves it, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from artoo.contracts.execution import CallStatus, ToolCall
from artoo.contracts.plan import Caution, MustNot
from artoo.ports.tools import Parameter, Ticket, ToolSpec
from artoo.tools.limited import LimitedTools


@dataclass
class Recorded:
    """Tools that only note what is called. `shell` has the program of its command as second identity."""

    called: list[str] = field(default_factory=list[str])
    interrupted: tuple[ToolCall, ...] = ()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(ToolSpec(name, name, (Parameter("input", ""),), 1) for name in ("glob", "shell"))

    def toolbox(self, subtask_id: str, must_not: MustNot, cautions: tuple[Caution, ...] = ()) -> Recorded:
        return self

    def identities(self, name: str, arguments: Mapping[str, str]) -> tuple[str, ...]:
        return (name, f"{name}:{arguments['input'].split()[0]}") if name == "shell" else (name,)

    async def call(self, name: str, arguments: Mapping[str, str], ticket: Ticket | None = None) -> ToolCall:
        self.called.append(name)
        return ToolCall(tool=name, identity=(name,), target="", input="", status=CallStatus.OK)


async def test_forbidden_tools_are_absent_and_refused() -> None:
    """What is forbidden is not offered; called all the same, it is refused with the reason and does not run."""
    inner = Recorded()
    tools = LimitedTools(inner, frozenset({"glob"}))
    assert [spec.name for spec in tools.specs] == ["shell"]
    box = tools.toolbox("one", MustNot())
    assert [spec.name for spec in box.specs] == ["shell"]
    call = await box.call("glob", {"input": "*"})
    assert call.status is CallStatus.REFUSED
    assert "no right to use glob" in (call.reason or "")
    assert (await box.call("shell", {"input": "ls"})).status is CallStatus.OK
    assert inner.called == ["shell"]


async def test_one_program_of_the_shell() -> None:
    """A program is forbidden by its identity, and the rest of the shell stays."""
    inner = Recorded()
    box = LimitedTools(inner, frozenset({"shell:curl"})).toolbox("one", MustNot())
    assert (await box.call("shell", {"input": "curl x"})).status is CallStatus.REFUSED
    assert (await box.call("shell", {"input": "ls"})).status is CallStatus.OK
    assert [spec.name for spec in box.specs] == ["glob", "shell"]
