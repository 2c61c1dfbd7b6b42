"""`shell`: bash in the project root, under whatever settles its changes."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace

from artoo.contracts.execution import CallStatus, only_shows
from artoo.ports.arguments import as_text
from artoo.ports.sandbox import Roots
from artoo.ports.tools import BOOLEAN, NUMBER, Parameter, ToolSpec
from artoo.tools.builtin.find_files import outcome_of_search
from artoo.tools.core.command_runner import COMMAND_SECONDS, Command, bash
from artoo.tools.core.live_files import Look, real_files
from artoo.tools.core.tool import Arguments, Outcome, argument, flag, number
from artoo.tools.core.workspace_commands import WorkspaceCommands
from artoo.tools.files.filename_index import FileIndex
from artoo.tools.resume.in_flight import Announcing
from artoo.tools.shell.find_redirect import index_query
from artoo.tools.shell.network_header import wanted_by, with_network
from artoo.tools.shell.parser import ShellCommand, SimpleCommand, parse_command

WALL_SECONDS = 86_400.0
"""For the registry: a call bounds itself by its timeout, and by what is left of the task's time."""

_SEARCHES = frozenset({"grep", "egrep", "fgrep", "zgrep", "rg", "ag"})
"""Programs whose exit code 1 means "not found"."""

_ONE_IS_AN_ANSWER = _SEARCHES | {"ack", "diff", "cmp", "lsof", "pgrep", "test", "["}
"""Programs whose exit code 1 means "no" or "different", not "failed"."""

_LISTS = _SEARCHES | {"find", "fd", "locate", "plocate"}
_OTHER_OUTPUT = frozenset(
    {"--count", "--quiet", "--silent", "--context", "-exec", "-execdir", "-printf", "-ls", "-delete", "-print0"}
)
_FENCE = re.compile(r"\s*```[\w-]*\n(.*?)\n?```\s*", re.DOTALL)

REMARKS = ("description", "explanation", "thought")
"""What other agents' tools that run programs take besides: words for the user."""

_SPEC = ToolSpec(
    name="shell",
    description="run a bash command in the project; no network unless the user agrees; goes on after its timeout",
    parameters=(
        Parameter("command", "the bash command", aliases=("cmd",)),
        Parameter("timeout", "seconds to wait, default 120", False, schema=NUMBER),
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
    """Runs a bash command exactly as the model wrote it. What becomes of its changes is the runner's business."""

    runner: WorkspaceCommands
    roots: Roots
    index: FileIndex
    files: Look = real_files
    spec: ToolSpec = _SPEC
    wall_seconds: float = WALL_SECONDS

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        return self._parsed(arguments).identities

    def target(self, arguments: Arguments) -> str:
        return with_network(self._parsed(arguments).normal, unfenced(argument(arguments, "command")))

    async def run(self, arguments: Arguments) -> Outcome:
        """Raises SandboxError when the command cannot be contained, ToolError when the index cannot be read."""
        command = unfenced(as_text(arguments["command"]))
        query = index_query(command, self.roots)
        if query is not None and len(arguments) == 1:
            found = await self.index.search(query, self.files())
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
    """Return the code without the Markdown fence that a model may have left around it."""
    whole = _FENCE.fullmatch(text)
    return whole.group(1) if whole else text


def _judged(parsed: ShellCommand, outcome: Outcome) -> Outcome:
    """Reads the exit code as the programs mean it, and counts the results of a search."""
    outcome = replace(_with_answer(parsed, outcome), masked=parsed.masks)
    if outcome.status is CallStatus.OK and not outcome.truncated and _lists_results(parsed):
        count = sum(1 for line in outcome.output.splitlines() if line.strip())
        return replace(outcome, result_count=count, output=outcome.output or "(no match)")
    return outcome


def _with_answer(parsed: ShellCommand, outcome: Outcome) -> Outcome:
    """ "Nothing found" and "different" are answers, with exit code 1. So is any exit code of a last statement that
    only shows something: how the statements before it ended, only what they printed tells.
    """
    final = parsed.last
    shows = final is not None and only_shows(_base(final) or "", *(word or "" for word in final.arguments[:1]))
    whole = not outcome.dropped and outcome.reason is None
    last = parsed.commands[-1] if parsed.commands else None  # whose exit code it is, if nothing before it ended it
    quiet = not outcome.error_output.strip()
    answers = outcome.exit_code == 1 and quiet and _base(last) in _ONE_IS_AN_ANSWER
    if outcome.status is CallStatus.ERROR and whole and (shows or answers):
        return replace(outcome, status=CallStatus.OK)
    return outcome


def _lists_results(parsed: ShellCommand) -> bool:
    """Whether every line of the output is one thing found."""
    if _base(parsed.final) not in _LISTS or parsed.final is None:
        return False
    if any(redirection.writes and redirection.descriptor in (None, "1") for redirection in parsed.redirections):
        return False
    words = [word or "" for word in parsed.final.arguments]
    if any(word in _OTHER_OUTPUT for word in words):
        return False
    return not any(re.fullmatch(r"-[A-Za-z]*[cqABC]\w*", word) for word in words) or _base(parsed.final) == "find"


def _base(command: SimpleCommand | None) -> str | None:
    return None if command is None or command.name is None else command.name.rsplit("/", 1)[-1]
