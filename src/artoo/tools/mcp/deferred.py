"""`find_tools` and `call_tool`, used if MCP tools take too much of the prompt.

find_tools(query) ──► names, descriptions and parameters of the best matches
call_tool(tool, arguments) ──► the tool itself, behind the gate under its own identity
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from artoo.contracts.errors import ToolError
from artoo.ports.arguments import read_arguments
from artoo.ports.tools import Parameter, ToolSpec
from artoo.tools.approval.ask_first import Asking
from artoo.tools.core.tool import Arguments, CountsAsItself, Outcome, argument
from artoo.tools.resume.in_flight import Announcing

_CHARACTERS_A_TOKEN = 4
_FOUND = 8
_PRIORITY = 69
_WORD = re.compile(r"[^\W_]+")
_OBJECT = {"type": "object"}


def tokens_of(specs: Iterable[ToolSpec]) -> int:
    """Estimate the number of tokens that the descriptions of tools take in each request."""
    texts = (f"{spec.name}{spec.description}{json.dumps(spec.json_schema())}" for spec in specs)
    return sum(map(len, texts)) // _CHARACTERS_A_TOKEN


@dataclass(frozen=True, slots=True)
class FindTools(CountsAsItself):
    """Lists the deferred tools that match a query best, counted by the words that they share with it."""

    name: str
    tools: tuple[Asking, ...]
    servers: tuple[str, ...]
    wall_seconds: float = 10.0

    @property
    def spec(self) -> ToolSpec:
        where = f"{len(self.tools)} further tools of the MCP servers {', '.join(self.servers)}"
        return ToolSpec(
            name=self.name,
            description=f"find tools among {where}, with their parameters",
            parameters=(Parameter("query", "words of what the tool should do, or of its name"),),
            priority=_PRIORITY,
            only_reads=True,
        )

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "query")

    async def run(self, arguments: Arguments) -> Outcome:
        """Return the best matches, each with the JSON schema of its arguments."""
        query = set(_words(argument(arguments, "query")))
        ranked = sorted(self.tools, key=lambda tool: -_fit(query, tool.spec))
        found = [tool.spec for tool in ranked[:_FOUND] if _fit(query, tool.spec)]
        if not found:
            names = ", ".join(sorted(tool.spec.name for tool in self.tools)[:200])
            return Outcome(output=f"No tool fits these words. All names: {names}", result_count=0)
        lines = [f"{each.name}: {each.description}\n  {json.dumps(each.json_schema())}" for each in found]
        return Outcome(output="\n".join(lines), result_count=len(found))


@dataclass(frozen=True, slots=True)
class CallTool(Announcing):
    """Calls one of the deferred tools. A call has the identity of that tool, and needs the same approval."""

    name: str
    finder: str
    tools: tuple[Asking, ...]

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description=f"call a tool that {self.finder} has found",
            parameters=(
                Parameter("tool", "the tool's name"),
                Parameter("arguments", "its arguments", required=False, schema=_OBJECT),
            ),
            priority=_PRIORITY,
            writes=True,
        )

    @property
    def wall_seconds(self) -> float:
        """Return the longest time limit of the deferred tools."""
        return max(tool.wall_seconds for tool in self.tools)

    def identities(self, arguments: Arguments) -> tuple[str, ...]:
        found = self._named(arguments)
        return (self.name,) if found is None else found.identities(self._given(arguments))

    def target(self, arguments: Arguments) -> str:
        found = self._named(arguments)
        return argument(arguments, "tool") if found is None else found.target(self._given(arguments))

    async def run(self, arguments: Arguments) -> Outcome:
        """Call a tool. Raises ToolError if the tool does not exist or does not take these arguments."""
        found = self._named(arguments)
        if found is None:
            raise ToolError(f"there is no tool {argument(arguments, 'tool')!r}; look for it with {self.finder}")
        given, problem = read_arguments(found.spec, self._given(arguments))
        if problem:
            raise ToolError(f"{problem}; it takes: {json.dumps(found.spec.json_schema())}")
        return await found.run(given)

    def _named(self, arguments: Arguments) -> Asking | None:
        wanted = argument(arguments, "tool")
        return next((tool for tool in self.tools if tool.spec.name == wanted), None)

    @staticmethod
    def _given(arguments: Arguments) -> Arguments:
        given = arguments.get("arguments")
        return given if isinstance(given, dict) else {}


def deferred(tools: Sequence[Asking], servers: Iterable[str], taken: Iterable[str]) -> tuple[FindTools, CallTool]:
    """Return the two tools that find and call the deferred tools. Their names are not used by any other tool."""
    used = set(taken)
    find = next(name for name in ("find_tools", "find_mcp_tools", "find_mcp_tools_2") if name not in used)
    call = next(name for name in ("call_tool", "call_mcp_tool", "call_mcp_tool_2") if name not in used)
    return FindTools(find, tuple(tools), tuple(servers)), CallTool(call, find, tuple(tools))


def _fit(query: set[str], spec: ToolSpec) -> int:
    """Count the words of the query that occur in a tool's description, and twice those that occur in its name."""
    name, said = set(_words(spec.name)), set(_words(spec.description))
    return 2 * len(query & name) + len(query & said)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text))]
