"""An agent has the tools that its identity leaves it, and no others."""

from __future__ import annotations

from dataclasses import dataclass

from tool_doubles import StillClock

from artoo.contracts.execution import CallStatus
from artoo.contracts.plan import MustNot
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.core.registry import Registry, SubTaskToolbox
from artoo.tools.core.tool import Arguments, Outcome, argument


@dataclass(frozen=True, slots=True)
class Does:
    """A tool that does nothing. `shell` has the program of its command as second identity."""

    name: str
    aliases: tuple[str, ...] = ()
    wall_seconds: float = 5.0

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.name, (Parameter("input", ""),), 1, aliases=self.aliases)

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        program = argument(arguments, "input").split()[:1]
        return (f"{self.name}:{program[0]}",) if self.name == "shell" and program else (self.name,)

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "input")

    async def run(self, arguments: Arguments) -> Outcome:
        return Outcome(output="done")


def box_without(*forbidden: str) -> SubTaskToolbox:
    registry = Registry([Does("find_files", ("glob",))], StillClock())
    registry.add([Does("shell")], forbidden)
    return registry.toolbox("one", MustNot())


async def test_forbidden_tools_are_absent_and_refused() -> None:
    """A forbidden tool is not offered; called all the same, it is refused with the reason and does not run."""
    box = box_without("find_files")
    assert [spec.name for spec in box.specs] == ["shell"]
    call = await box.call("find_files", {"input": "*"})
    assert call.status is CallStatus.REFUSED
    assert "no right to use find_files" in (call.reason or "")
    assert (await box.call("shell", {"input": "ls"})).status is CallStatus.OK


async def test_one_program_of_the_shell() -> None:
    """A program is forbidden by its identity, and the rest of the shell stays."""
    box = box_without("shell:curl")
    assert (await box.call("shell", {"input": "curl x"})).status is CallStatus.REFUSED
    assert (await box.call("shell", {"input": "ls"})).status is CallStatus.OK
    assert [spec.name for spec in box.specs] == ["find_files", "shell"]
