"""The open sessions of an editor with their limit, and with directory, MCP servers, and running prompt."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from acp.exceptions import RequestError
from acp.schema import HttpMcpServer, McpServerStdio

from artoo.contracts.errors import ConfigurationError
from artoo.contracts.settling import ApplyMode
from artoo.protocols.handed import HandedTask
from artoo.runtime.task.conversations import Session
from artoo.tools.mcp.servers import McpServer, servers_of

MOST_SESSIONS = 64
"""Maximum number of open sessions of one editor. If there are more, the one that was not used for the longest time
is closed. It can be loaded again."""
LONGEST_NAME = 100
INVALID_REQUEST, INVALID_PARAMS, INTERNAL, NOT_FOUND = -32_600, -32_602, -32_603, -32_002


@dataclass(slots=True)
class PromptTurn:
    """A prompt that is being answered. `task` is None before the task has begun, and for a command."""

    task: HandedTask | None = None
    cancelled: bool = False


@dataclass(slots=True)
class OpenSession:
    """One conversation of an editor. `apply`: the mode, which decides which changes are applied without approval.

    `servers` are MCP servers that the editor has configured. `models` are the models that can be chosen, the
    configured one first. `model` is the chosen one.
    """

    session: Session
    project: Path
    apply: ApplyMode
    servers: tuple[McpServer, ...] = ()
    turn: PromptTurn | None = None
    models: tuple[str, ...] = ()
    model: str | None = None


@dataclass(slots=True)
class OpenSessions:
    """The open sessions of an editor, by name. `apply` is the mode of a new session. Every method raises
    RequestError if the editor's request is wrong."""

    apply: ApplyMode
    _open: OrderedDict[str, OpenSession] = field(default_factory=OrderedDict[str, OpenSession])
    _loading: set[str] = field(default_factory=set[str])

    def __contains__(self, name: object) -> bool:
        return name in self._open

    def add(
        self, session: Session, cwd: str, servers: Sequence[object] | None, mode: ApplyMode | None = None
    ) -> OpenSession:
        """Open a session, or open it again with new parameters. If it has a mode of its own already, this mode is
        kept."""
        project = directory(cwd)
        try:
            passed = passed_servers(servers or ())
        except ConfigurationError as error:
            raise RequestError(INVALID_PARAMS, str(error)) from error
        opened = self._open[session.name] = OpenSession(session, project, mode or self.apply, passed)
        self._open.move_to_end(session.name)
        idle = [name for name, one in self._open.items() if one.turn is None]
        # Only idle sessions are closed, because a session that answers a prompt still needs its state.
        for name in idle[: max(0, len(self._open) - MOST_SESSIONS)]:
            del self._open[name]
        return opened

    def find(self, name: str) -> OpenSession:
        """Find an open session."""
        found = self._open.get(name)
        if found is None:
            raise RequestError(NOT_FOUND, f"there is no open session {name[:LONGEST_NAME]!r}")
        return found

    def begin(self, name: str) -> tuple[OpenSession, PromptTurn]:
        """Begin a prompt in an open session that is not answering another one."""
        found = self.find(name)
        self._check_idle(name)
        self._open.move_to_end(name)
        found.turn = PromptTurn()
        return found, found.turn

    @contextmanager
    def loading(self, name: str) -> Generator[None]:
        """Lock a session while it is loaded, so that the state that is read from disk remains the latest."""
        self._check_idle(name)
        self._loading.add(name)
        try:
            yield
        finally:
            self._loading.remove(name)

    def _check_idle(self, name: str) -> None:
        """Raise RequestError if the session is answering a prompt or being loaded."""
        found = self._open.get(name)
        if found is not None and found.turn is not None:
            raise RequestError(INVALID_REQUEST, f"session {name} answers a prompt now; cancel it first")
        if name in self._loading:
            raise RequestError(INVALID_REQUEST, f"session {name} is being loaded; wait for the answer")


def directory(cwd: str) -> Path:
    """Resolve the working directory of a session. Raises RequestError."""
    shown = f"cwd {cwd[:1_000]!r}"
    if not Path(cwd).is_absolute():
        raise RequestError(INVALID_PARAMS, f"{shown} is not the absolute path of a directory")
    try:
        path = Path(os.path.realpath(cwd, strict=True))
    except FileNotFoundError as error:
        raise RequestError(INVALID_PARAMS, f"{shown} does not exist") from error
    except (OSError, ValueError) as error:
        # The path may contain a cycle of links, a directory that may not be read, or half a character.
        raise RequestError(INVALID_PARAMS, f"{shown} cannot be looked at: {error}") from error
    if not path.is_dir():
        raise RequestError(INVALID_PARAMS, f"{shown} is not a directory")
    return path


MOST_SERVERS = 16
"""Maximum number of MCP servers of one session."""
_WHERE = "the session"
_LONGEST_NAME = 60


def passed_servers(given: Sequence[object]) -> tuple[McpServer, ...]:
    """Convert the MCP servers that an editor passes. Raises ConfigurationError for a server that cannot be used."""
    if len(given) > MOST_SERVERS:
        raise ConfigurationError(f"{len(given)} MCP servers came with the session; it may have {MOST_SERVERS}")
    entries: dict[str, dict[str, object]] = {}
    for one in given:
        name, entry = _entry(one)
        entries[_free(name, entries)] = entry
    return servers_of(entries, _WHERE)


def _entry(one: object) -> tuple[str, dict[str, object]]:
    if isinstance(one, McpServerStdio):
        env = {variable.name: variable.value for variable in one.env}
        return one.name, {"command": one.command, "args": one.args, "env": env}
    if isinstance(one, HttpMcpServer):
        return one.name, {"url": one.url, "headers": {header.name: header.value for header in one.headers}}
    kind = str(getattr(one, "type", type(one).__name__))
    raise ConfigurationError(f"an MCP server of the kind {kind!r} cannot be used: programs and streamable HTTP can")


def _free(name: str, taken: dict[str, dict[str, object]]) -> str:
    """Return a name that no other server has and that can be part of a tool's name. Names from an editor may
    contain spaces, or occur twice."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip("_.-")[:_LONGEST_NAME] or "server"
    number, free = 2, plain
    while free in taken:
        free, number = f"{plain}_{number}", number + 1
    return free
