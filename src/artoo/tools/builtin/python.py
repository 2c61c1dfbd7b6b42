"""The tool `python`, which runs a script in the sandbox, with its longest text.

Small models process data more reliably in Python than in bash.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, replace

from artoo.contracts.errors import ToolError
from artoo.ports.arguments import as_text
from artoo.ports.tools import NUMBER, Parameter, ToolSpec
from artoo.sandbox.reading.programs import this_python
from artoo.tools.builtin.shell import REMARKS, WALL_SECONDS, unfenced
from artoo.tools.core.command_runner import COMMAND_SECONDS, Command, python
from artoo.tools.core.tool import Arguments, CountsAsItself, Outcome, argument, number
from artoo.tools.core.workspace_commands import WorkspaceCommands
from artoo.tools.resume.in_flight import Announcing
from artoo.tools.shell.network_header import wanted_by, with_network

_MAX_SCRIPT = 100_000
_REACHING_OUT = frozenset({"open", "input", "exec", "eval", "compile", "__import__", "globals", "breakpoint"})
"""Builtins by which a program can access more than its own data."""

_SPEC = ToolSpec(
    name="python",
    description="run a Python script (standard library: csv, json, re …) that prints the result",
    parameters=(
        Parameter("code", "the script", clear=True),
        Parameter("timeout", f"seconds to wait, default {COMMAND_SECONDS:.0f}", False, schema=NUMBER),
    ),
    priority=61,
    body="code",
    writes=True,
    languages=("python", "py"),
    ignored=REMARKS,
)


@dataclass(frozen=True, slots=True)
class Python(Announcing, CountsAsItself):
    """Runs a Python script in the project root, isolated from the user's environment variables and packages."""

    runner: WorkspaceCommands
    interpreter: str = this_python()
    spec: ToolSpec = _SPEC
    wall_seconds: float = WALL_SECONDS

    def target(self, arguments: Arguments) -> str:
        """Return the code without comments and layout. If it cannot be parsed, remove only trailing blanks."""
        code = unfenced(argument(arguments, "code"))
        try:
            return with_network(ast.unparse(_parsed(code)), code)
        except ToolError:
            return "\n".join(line.rstrip() for line in code.strip().splitlines())

    async def run(self, arguments: Arguments) -> Outcome:
        """Run the script. Raises ToolError for text that is not Python, and SandboxError if the script cannot be
        confined."""
        code = unfenced(as_text(arguments["code"]))
        tree = _parsed(code)
        outcome = await self.runner.run(
            Command(
                python(code, self.interpreter),
                code,
                seconds=number(arguments, "timeout", COMMAND_SECONDS),
                network=wanted_by(code),
                by="python",
            )
        )
        return replace(outcome, self_contained=_self_contained(tree))


def _parsed(code: str) -> ast.Module:
    """Parse the script to a syntax tree. Raises ToolError with the invalid line."""
    if len(code) > _MAX_SCRIPT:
        raise ToolError(f"the script is longer than {_MAX_SCRIPT} characters; do it in parts")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except SyntaxError as error:
        line = (error.text or "").strip()
        problem = f"line {error.lineno} is not valid Python ({error.msg}): {line}"
        raise ToolError(f"{problem}; nothing was run") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ToolError(f"this is not a Python script that can be read: {error}; nothing was run") from error


def _self_contained(tree: ast.Module) -> bool:
    """Check whether a script imports nothing and uses no name by which it could access anything outside of
    itself."""
    return not any(
        isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Name) and node.id in _REACHING_OUT)
        for node in ast.walk(tree)
    )
