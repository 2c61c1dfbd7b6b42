"""A home on disk, the real sandbox over it, and a person who answers by a list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tool_doubles import StillClock, roots_in

from artoo.contracts.confirmation import ConfirmationRequest, Consent
from artoo.contracts.execution import ToolCall
from artoo.contracts.plan import MustNot
from artoo.ports.sandbox import Roots, Sandbox, TaskLedger
from artoo.tools.gate import Gate
from artoo.tools.gated import GatedCommands, GatedWriter
from artoo.tools.origins import Origins
from artoo.tools.questions import AskPerson
from artoo.tools.registry import Registry
from artoo.tools.standard import builtin_tools


@dataclass
class Person:
    """Answers in order, then always no; `meanwhile` happens while the question is open."""

    answers: list[Consent] = field(default_factory=list[Consent])
    asked: list[ConfirmationRequest] = field(default_factory=list[ConfirmationRequest])
    meanwhile: Callable[[], object] = bool

    async def __call__(self, request: ConfirmationRequest) -> Consent:
        self.asked.append(request)
        self.meanwhile()
        return self.answers.pop(0) if self.answers else Consent.NO


class World:
    """One task's tools behind one gate."""

    def __init__(self, place: Path, sandbox: Sandbox, gate: Gate | None = None, request: str = "") -> None:
        self.roots: Roots = roots_in(place)
        self.person = Person()
        self.gate = gate or Gate(AskPerson(self.person), Origins(request))
        ledger = TaskLedger()
        runner = GatedCommands(sandbox, self.roots, "task", self.gate, ledger)
        writer = GatedWriter(sandbox, self.roots, "task", self.gate, ledger)
        tools = builtin_tools(runner, writer, self.roots, self.roots.home / ".artoo", request or "here")
        registry = Registry(tools, StillClock(), self.gate.origins.observe, self.gate)
        self.box = registry.toolbox("subtask", MustNot())

    @property
    def project(self) -> Path:
        return self.roots.project

    async def shell(self, command: str) -> ToolCall:
        return await self.box.call("shell", {"command": command})

    async def write(self, path: str, content: str) -> ToolCall:
        return await self.box.call("write_file", {"path": path, "content": content})

    def paths(self, *names: str) -> tuple[str, ...]:
        return tuple(str(self.project / name) for name in names)
