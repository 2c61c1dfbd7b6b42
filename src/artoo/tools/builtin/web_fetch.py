"""The tool `web_fetch`, with its description, approval of hosts, ports, and timeout.

A web page is read as Markdown, and a PDF as text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from artoo.contracts.errors import ToolError
from artoo.contracts.execution import CallStatus
from artoo.ports.tools import Parameter, ToolSpec
from artoo.sandbox.reading.programs import this_python
from artoo.tools.builtin.shell import WALL_SECONDS
from artoo.tools.core.command_runner import Command, python
from artoo.tools.core.tool import Arguments, CountsAsItself, Outcome, argument
from artoo.tools.core.workspace_commands import WorkspaceCommands
from artoo.tools.resume.in_flight import Announcing
from artoo.tools.shell.network_header import wanted

FETCH_SECONDS = 90.0
_PORTS = {"https": (443,), "http": (80, 443)}
"""Ports that a fetch may reach for each scheme. A server on port 80 often redirects to its port 443."""

_SPEC = ToolSpec(
    name="web_fetch",
    description="read a web page or PDF as text; asks the user for each new host",
    parameters=(Parameter("url", "its address", clear=True),),
    priority=91,
    only_reads=True,
    aliases=("fetch", "fetch_url", "open_url"),
)


@dataclass(frozen=True, slots=True)
class WebFetch(Announcing, CountsAsItself):
    """Fetches a page with a script in the task's sandbox. The egress proxy permits only the host of that page."""

    runner: WorkspaceCommands
    interpreter: str = this_python()
    spec: ToolSpec = _SPEC
    wall_seconds: float = WALL_SECONDS

    def target(self, arguments: Arguments) -> str:
        return argument(arguments, "url")

    async def run(self, arguments: Arguments) -> Outcome:
        """Fetch the page. Raises ToolError for an invalid web address, and SandboxError if the sandbox is not
        available."""
        url = argument(arguments, "url")
        outcome = await self.runner.run(
            Command(
                (*python(_script(), self.interpreter), url),
                f"fetch {url}",
                seconds=FETCH_SECONDS,
                network=wanted(_hosts(url)),
                by="web_fetch",
            )
        )
        if outcome.status is CallStatus.ERROR and outcome.error_output:
            problem = outcome.error_output.strip().splitlines()[-1]
            return replace(outcome, reason=outcome.reason or problem, error_output="")
        return outcome


@cache
def _script() -> str:
    return Path(__file__).with_name("web_page.py").read_text("utf-8")


def _hosts(url: str) -> tuple[str, ...]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ToolError(f"{url!r} is not an address: {error}") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ToolError(f"{url!r} is not an address of the web; it begins with https:// or http://")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return tuple(f"{host}:{one}" for one in ((port,) if port else _PORTS[parts.scheme]))
