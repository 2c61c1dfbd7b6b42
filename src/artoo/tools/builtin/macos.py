"""`applescript` and `shortcuts`: other programs on macOS. Nothing there can be staged, so both always ask."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from artoo.ports.sandbox import Limits, Roots, SandboxRequest
from artoo.ports.tools import Parameter, ToolSpec
from artoo.sandbox.reading.environment import cleaned
from artoo.tools.builtin.shell import unfenced
from artoo.tools.commands import outcome_of
from artoo.tools.gate_rules import ask_about_script
from artoo.tools.tool import Arguments, Outcome, argument
from artoo.world.process import run_confined
from artoo.world.process_group import led
from artoo.world.runner import Over, run_of

SCRIPT_SECONDS = 120.0
_GRACE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Real:
    """Runs a program with the person's own rights, bounded in time and output. Only behind a question."""

    roots: Roots
    seconds: float = SCRIPT_SECONDS
    limits: Limits = field(default_factory=Limits)

    async def run(self, argv: tuple[str, ...], stdin: bytes | None = None) -> Outcome:
        """Raises SandboxError when it cannot be started."""
        limits = replace(self.limits, wall_seconds=self.seconds)
        env = cleaned(os.environ, SandboxRequest(argv, self.roots.project, self.roots, task_id=""))
        with led(argv, env, self.roots.project) as program:
            ended = await run_confined(program, limits, stdin)
        return outcome_of(run_of("none", Over(ended)), limits)


@dataclass(frozen=True, slots=True)
class AppleScript:
    """Runs a script with `osascript` (`program`), which reads it from its standard input."""

    real: Real
    program: str

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name="applescript",
            description="control macOS applications with AppleScript; the person is asked each time",
            parameters=(Parameter("script", "the script"),),
            priority=40,
            body="script",
            writes=True,
            languages=("applescript",),
        )

    @property
    def wall_seconds(self) -> float:
        return self.real.seconds + _GRACE_SECONDS

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return ("applescript",)

    def target(self, arguments: Arguments) -> str:
        return "\n".join(line.rstrip() for line in unfenced(arguments.get("script", "")).strip().splitlines())

    def why_ask(self, arguments: Arguments) -> str | None:
        return ask_about_script("AppleScript")

    async def run(self, arguments: Arguments) -> Outcome:
        """Raises SandboxError when `osascript` cannot be started."""
        return await self.real.run((self.program, "-"), unfenced(arguments["script"]).encode())


@dataclass(frozen=True, slots=True)
class Shortcuts:
    """Runs one of the person's shortcuts by name, with `shortcuts` (`program`)."""

    real: Real
    program: str

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name="shortcuts",
            description="run one of the person's macOS shortcuts; the person is asked each time",
            parameters=(Parameter("name", "the shortcut"), Parameter("input", "a file for it", required=False)),
            priority=41,
            writes=True,
        )

    @property
    def wall_seconds(self) -> float:
        return self.real.seconds + _GRACE_SECONDS

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return ("shortcuts",)

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "name")

    def why_ask(self, arguments: Arguments) -> str | None:
        return ask_about_script("Shortcuts")

    async def run(self, arguments: Arguments) -> Outcome:
        """Raises SandboxError when `shortcuts` cannot be started."""
        given = argument(arguments, "input")
        more = ("--input-path", given) if given else ()
        return await self.real.run((self.program, "run", self.target(arguments), *more))
