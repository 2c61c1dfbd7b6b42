"""The tool `shell`, which runs bash commands, with exit code 1 of grep and others as an answer.

Commands run in the project root, in the task's sandbox.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace

from artoo.contracts.execution import CallStatus
from artoo.ports.arguments import as_text
from artoo.ports.sandbox import Roots
from artoo.ports.tools import BOOLEAN, NUMBER, Parameter, ToolSpec
from artoo.tools.builtin.find_files import outcome_of_search
from artoo.tools.core.command_runner import COMMAND_SECONDS, Command, bash
from artoo.tools.core.to_thread import in_thread
from artoo.tools.core.tool import Arguments, Look, Outcome, argument, flag, number
from artoo.tools.core.workspace_commands import WorkspaceCommands
from artoo.tools.files.search import FileSearch
from artoo.tools.resume.in_flight import Announcing
from artoo.tools.shell.find_redirect import index_query
from artoo.tools.shell.network_header import wanted_by, with_network
from artoo.tools.shell.parser import ShellCommand, parse_command
from artoo.workspace.files.rooted import real_files

WALL_SECONDS = 86_400.0
"""Time limit that the registry enforces. A call ends earlier, by its own timeout and the remaining time of the
task."""

_ONE_IS_AN_ANSWER = frozenset(
    {"grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "diff", "cmp", "lsof", "pgrep", "test", "["}
)
"""Programs whose exit code 1 means "not found" or "different" instead of "failed"."""

_FENCE = re.compile(r"\s*```[\w-]*\n(.*?)\n?```\s*", re.DOTALL)

REMARKS = ("description", "explanation", "thought")
"""Additional arguments that the command tools of other agents have. Their values are remarks for the user."""

_SPEC = ToolSpec(
    name="shell",
    description="run a bash command in the project; no network unless the user agrees; goes on after its timeout",
    parameters=(
        Parameter("command", "the bash command", aliases=("cmd",), clear=True),
        Parameter("timeout", f"seconds to wait, default {COMMAND_SECONDS:.0f}", False, schema=NUMBER),
        Parameter("background", "start it, do not wait", False, ("run_in_background",), BOOLEAN),
        Parameter("pty", "give it a terminal", False, schema=BOOLEAN),
        Parameter("keep", "let it run on after the task", False, schema=BOOLEAN),
    ),
    priority=60,
    body="command",
    writes=True,
    languages=("bash", "sh"),
    ignored=REMARKS,
    aliases=("bash", "execute_bash", "execute_command", "run_command", "run_shell_command"),
)


@dataclass(frozen=True, slots=True)
class Shell(Announcing):
    """Runs a bash command exactly as the model wrote it."""

    runner: WorkspaceCommands
    roots: Roots
    search: FileSearch
    files: Look = real_files
    spec: ToolSpec = _SPEC
    wall_seconds: float = WALL_SECONDS

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return self._parsed(arguments).identities

    def target(self, arguments: Arguments) -> str:
        return with_network(self._parsed(arguments).normal, unfenced(argument(arguments, "command")))

    async def run(self, arguments: Arguments) -> Outcome:
        """Run the command. Raises SandboxError if the command cannot be confined, and ToolError if a replaced
        `find` can search no folder."""
        command = unfenced(as_text(arguments["command"]))
        query = index_query(command, self.roots)
        if query is not None and len(arguments) == 1:
            found = await in_thread(self.search.search, query, self.files())
            return replace(outcome_of_search(query, found, self.roots, query.pattern), exit_code=0)
        parsed = self._parsed(arguments)
        judged = functools.partial(_judged, parsed)
        keep = flag(arguments, "keep")
        asked = Command(
            bash(command),
            command,
            seconds=number(arguments, "timeout", COMMAND_SECONDS),
            background=keep or flag(arguments, "background"),
            pty=flag(arguments, "pty"),
            keep=keep,
            network=wanted_by(command),
            judged=judged,
        )
        outcome = await self.runner.run(asked)
        if command != arguments["command"]:
            outcome = replace(outcome, ran=command)
        return outcome

    def _parsed(self, arguments: Arguments) -> ShellCommand:
        return parse_command(unfenced(argument(arguments, "command")), {"HOME": str(self.roots.home)})


def unfenced(text: str) -> str:
    """Remove the Markdown fence that a model may have written around the code."""
    whole = _FENCE.fullmatch(text)
    return whole.group(1) if whole else text


def _judged(parsed: ShellCommand, outcome: Outcome) -> Outcome:
    """Interpret the exit code by the conventions of the last program in the command."""
    quiet = not outcome.dropped and outcome.reason is None and not outcome.error_output.strip()
    answers = outcome.exit_code == 1 and quiet and parsed.ending in _ONE_IS_AN_ANSWER
    status = CallStatus.OK if outcome.status is CallStatus.ERROR and answers else outcome.status
    return replace(outcome, status=status, masked=parsed.masks)
