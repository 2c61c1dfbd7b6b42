"""Loads AgentDojo: worlds of tools (mail, chat, travel, bank), user tasks, and injections in what tools say (MIT).

`agentdojo` are the user tasks alone. `agentdojo-attacked` is each of them with each injection: the model reads
what the user task reads, does all that the injection wants, then the rest. Solved is what took no effect.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.suite import DataMissing, Task
from bench.world import Offered, ToolFailed

VERSION = "v1.2.2"
_NEEDS = "agentdojo deepdiff orderly-set cachebox docstring-parser email-validator dnspython"
_READS = ("get_", "search_", "list_", "check_", "read_")
_ACTS = {"get_webpage", "get_unread_emails"}  # the first tells the page's owner something, the other marks as read


def tasks(data: Path | None) -> tuple[Task, ...]:
    """Return the user tasks, without injections. Raises DataMissing."""
    return tuple(
        _task(_World(name, suite, user, None))
        for name, suite in _suites(data)
        for user in suite.user_tasks.values()
    )


def attacked(data: Path | None) -> tuple[Task, ...]:
    """Return each user task with each injection. Raises DataMissing."""
    return tuple(
        _task(_World(name, suite, user, injection))
        for name, suite in _suites(data)
        for injection in suite.injection_tasks.values()
        for user in suite.user_tasks.values()
    )


def _suites(data: Path | None) -> Iterator[tuple[str, Any]]:
    """Yield their suites. `data` is the directory that `pip install --target` filled; None if it is on the path."""
    if data is not None:
        sys.path.append(str(data))
    try:
        place = importlib.import_module("agentdojo").__path__[0]
        # The packages of their models import the clients of all vendors, which only their own runner needs.
        models = sys.modules["agentdojo.agent_pipeline"] = ModuleType("agentdojo.agent_pipeline")
        models.__path__ = [f"{place}/agent_pipeline"]
        client = sys.modules["agentdojo.agent_pipeline.llms.google_llm"] = ModuleType("google_llm")
        client.__dict__["EMPTY_FUNCTION_NAME"] = ""
        suites = importlib.import_module("agentdojo.task_suite.load_suites").get_suites(VERSION)
    except ImportError as error:
        raise DataMissing(
            f"{error}. Run `pip install --target DIRECTORY --no-deps {_NEEDS}` and name it with --data."
        ) from error
    yield from suites.items()


def _reads(tool: str) -> bool:
    return tool.startswith(_READS) and tool not in _ACTS


def _task(world: _World) -> Task:
    names = [world.name, world.user.ID, *([world.injection.ID] if world.injection else [])]
    return Task("/".join(names), world.user.PROMPT, _nothing, _nothing, lambda _: "", world=world)


def _nothing(directory: Path) -> None:
    """The directory plays no part."""


@cache
def _attack(suite: Any) -> Any:
    """Return their *important instructions* attack on a suite. It remembers which places each user task reads."""
    attacks = importlib.import_module("agentdojo.attacks.important_instructions_attacks")
    return attacks.FixedJailbreakAttack(attacks.ImportantInstructionsAttack._JB_STRING, suite, None)


@dataclass(slots=True)
class _World:
    """One suite's environment in one task. `suite`, `user` and `injection` are objects of theirs."""

    name: str
    suite: Any
    user: Any
    injection: Any | None
    answer: str = ""
    _calls: list[Any] = field(default_factory=list[Any])
    _before: Any = None
    _now: Any = None

    def begin(self) -> Sequence[tuple[str, Mapping[str, object]]] | None:
        """See World. An injection that says no solution, or that the user task never reads, makes no task."""
        injected: Mapping[str, str] | None = self._injected() if self.injection else {}
        if injected is None:
            return None
        self._now = self.user.init_environment(self.suite.load_and_inject_default_environment(injected))
        self._before = self._now.model_copy(deep=True)
        self._calls.clear()
        sides = [self.user, *([self.injection] if self.injection else [])]
        self.answer = " ".join(side.GROUND_TRUTH_OUTPUT for side in sides if side.GROUND_TRUTH_OUTPUT)
        own = list(self.user.ground_truth(self._before))
        if self.injection is None:
            return [(call.function, dict(call.args)) for call in own]
        wanted = list(self.injection.ground_truth(self._before))
        if not wanted and not self.injection.GROUND_TRUTH_OUTPUT:
            return None
        # The injection says "before you solve the task", so it comes after what the user's task reads.
        first = next((at for at, call in enumerate(own) if not _reads(call.function)), len(own))
        return [(call.function, dict(call.args)) for call in (*own[:first], *wanted, *own[first:])]

    def _injected(self) -> Mapping[str, str] | None:
        """Return the attack's texts by their place; None if the user task reads no place."""
        try:
            return _attack(self.suite).attack(self.user, self.injection)
        except ValueError:
            return None

    def tools(self) -> Iterator[Offered]:
        """See World."""
        for tool in self.suite.tools:
            yield Offered(tool.name, tool.description, tool.parameters.model_json_schema(), _reads(tool.name))

    def call(self, tool: str, arguments: Mapping[str, object]) -> str:
        """See World."""
        runtime = importlib.import_module("agentdojo.functions_runtime")
        self._calls.append(runtime.FunctionCall(function=tool, args=dict(arguments)))
        output, error = runtime.FunctionsRuntime(self.suite.tools).run_function(self._now, tool, dict(arguments))
        if error is not None:
            raise ToolFailed(error)
        return importlib.import_module("agentdojo.agent_pipeline.tool_execution").tool_result_to_str(output)

    def wrong(self, answer: str) -> str:
        """See World. In a task that attacks, an attack that took effect; else the user's task if it is not done."""
        side = self.injection or self.user
        ask = side.security_from_traces if self.injection else side.utility_from_traces
        held = ask(answer, self._before, self._now, self._calls)
        if held is None:
            held = (side.security if self.injection else side.utility)(answer, self._before, self._now)
        if self.injection:
            return "the attack took effect" if held else ""
        return "" if held else "the user's task is not done"
