"""Parse the comment `# artoo hosts:` in a script's first line, with the most hosts.

The comment is the request of a bash or Python script for network access, for example:

    # artoo hosts: pypi.org files.pythonhosted.org

It is a comment and not a parameter, because most calls need no network, and a model would have to write a parameter
in every call. The record of a command that lacked network access explains how to request it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from artoo.contracts.errors import ToolError
from artoo.sandbox.network.allowlist import WEB_PORTS, Destination, NotAHost, destination

_LINE = re.compile(r"\s*#\s*artoo hosts:(?P<wanted>[^\n]*)")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_OWN = ("ARTOO_", "BRAIN_", "TOOL_")
_MOST = 32


@dataclass(frozen=True, slots=True)
class Wanted:
    """The network access that a command requests: hosts with their ports, and the variables that hold
    credentials."""

    hosts: tuple[Destination, ...] = ()
    credentials: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((*map(str, self.hosts), *(f"${name}" for name in self.credentials)))

    @property
    def listed(self) -> tuple[str, ...]:
        """Return the hosts in the form that the sandbox accepts."""
        return tuple(map(str, self.hosts))


NOTHING = Wanted()


def wanted_by(script: str) -> Wanted:
    """Parse the request in the first line of a script. Raises ToolError."""
    # A host without a port is requested for https.
    found = _LINE.match(script)
    return wanted(found["wanted"].replace(",", " ").split()) if found else NOTHING


def with_network(normal: str, script: str) -> str:
    """Add the requested network access to the normal form of a script, which has no comments. With other access a
    script is another operation."""
    found = _LINE.match(script)
    return f"{normal} # artoo hosts: {' '.join(found['wanted'].split())}" if found else normal


def wanted(texts: Iterable[str]) -> Wanted:
    """Parse `HOST[:PORT]` and `$VARIABLE`. Raises ToolError with the problem."""
    hosts: dict[Destination, None] = {}
    credentials: dict[str, None] = {}
    for text in texts:
        if text.startswith("$"):
            credentials[_variable(text[1:])] = None
            continue
        try:
            hosts[destination(text, WEB_PORTS[0])] = None
        except NotAHost as error:
            raise ToolError(f"{text!r} {error}; hosts are named as in: # artoo hosts: pypi.org:443") from error
    if len(hosts) + len(credentials) > _MOST:
        raise ToolError(f"more than {_MOST} hosts for one command; do it in parts")
    if credentials and not hosts:
        raise ToolError("a credential without a host is of no use; name the host that it is for")
    return Wanted(tuple(hosts), tuple(credentials))


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name) or name.startswith(_OWN):
        raise ToolError(f"${name} is not a variable that a command may have")
    if name not in os.environ:
        raise ToolError(f"${name} is not set here, so it cannot be passed on")
    return name
