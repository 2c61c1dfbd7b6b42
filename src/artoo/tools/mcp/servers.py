"""Which MCP servers there are: the usual `mcpServers` JSON, read strictly, by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from artoo.contracts.errors import ConfigurationError
from artoo.sandbox.reading.programs import find_program

LARGEST_FILE = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
_KNOWN = frozenset({"command", "args", "env", "cwd", "url", "headers", "type", "disabled", "trustReadOnly"})


@dataclass(frozen=True, slots=True)
class Shelter:
    """Where a server of the person's own starts unless its `cwd` says otherwise: nothing that a task made is taken
    there for a module or a package of the server's. `apart`: where its program is not taken from."""

    directory: Path
    apart: tuple[str, ...] = ()

    def prepare(self) -> Path:
        """Makes the directory, and returns it. Raises OSError."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.directory


@dataclass(frozen=True, slots=True)
class McpServer:
    """One server: a program that speaks on its standard streams (`command`), or a URL (streamable HTTP).

    `trust_read_only`: the person believes it when it says of a tool that it only reads. `shelter`: None for what a
    person agreed to start as the project has it.
    """

    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    url: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    trust_read_only: bool = False
    shelter: Shelter | None = None

    def program(self) -> str | None:
        """The program that it starts; None when it is not there."""
        name = self.command[0]
        if "/" in name:
            directory = self.cwd or (self.shelter.directory if self.shelter is not None else ".")
            name = str(Path(directory, name))
        return find_program(name, self.shelter.apart if self.shelter is not None else ())

    @property
    def shown(self) -> str:
        """What would be started or reached, for a person. Values of variables and headers are left out."""
        names = "".join(f" {key}=…" for key, _ in (*self.env, *self.headers))
        return f"{self.name}: {self.url or ' '.join(self.command)}{names}"


def read_servers(path: Path) -> tuple[McpServer, ...]:
    """The servers of a JSON file; none when there is no such file. Raises ConfigurationError."""
    try:
        if not path.is_file():
            return ()
        if path.stat().st_size > LARGEST_FILE:
            raise ConfigurationError(f"{path} is larger than {LARGEST_FILE} bytes; that is no list of MCP servers")
        data: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} cannot be read as JSON: {error}") from error
    found = _table(data, str(path)).get("mcpServers")
    if found is None:
        raise ConfigurationError(f'{path} has no mcpServers; write {{"mcpServers": {{"name": {{…}}}}}}')
    return servers_of(found, str(path))


def servers_of(data: object, where: str) -> tuple[McpServer, ...]:
    """The servers of an `mcpServers` table, without those that are disabled. Raises ConfigurationError."""
    listed = (_server(name, entry, where) for name, entry in _table(data, where).items())
    return tuple(server for server in listed if server is not None)


def _server(name: str, data: object, where: str) -> McpServer | None:
    here = f"{where}: mcpServers.{name}"
    if _NAME.fullmatch(name) is None:
        raise ConfigurationError(f"{here}: a server's name is letters, digits, '_', '-' and '.'")
    entry = _table(data, here)
    if unknown := sorted(entry.keys() - _KNOWN):
        raise ConfigurationError(f"{here}: {unknown[0]!r} is not known; there are {', '.join(sorted(_KNOWN))}")
    if entry.get("disabled") is True:
        return None
    command, url = entry.get("command"), entry.get("url")
    trusted = entry.get("trustReadOnly", False)
    if not isinstance(trusted, bool):
        raise ConfigurationError(f"{here}.trustReadOnly is neither true nor false")
    if isinstance(command, str) and command and url is None:
        return McpServer(
            name,
            command=(command, *_texts(entry.get("args", []), f"{here}.args")),
            env=_pairs(entry.get("env", {}), f"{here}.env"),
            cwd=_text(entry["cwd"], f"{here}.cwd") if entry.get("cwd") is not None else None,
            trust_read_only=trusted,
        )
    if isinstance(url, str) and re.match(r"https?://[^\s@]+$", url) and command is None:
        if entry.get("type") == "sse":
            raise ConfigurationError(f"{here}: the old SSE transport is not offered; use streamable HTTP")
        return McpServer(
            name, url=url, headers=_pairs(entry.get("headers", {}), f"{here}.headers"), trust_read_only=trusted
        )
    raise ConfigurationError(f"{here}: give either a command with args, or an http(s) url")


def _table(data: object, where: str) -> Mapping[str, object]:
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"{where} is not a table of names and values")
    return cast("Mapping[str, object]", data)


def _texts(data: object, where: str) -> tuple[str, ...]:
    if not isinstance(data, list | tuple):
        raise ConfigurationError(f"{where} is not a list")
    return tuple(_text(one, where) for one in cast("list[object]", data))


def _pairs(data: object, where: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, _text(value, f"{where}.{name}")) for name, value in _table(data, where).items())


def _text(data: object, where: str) -> str:
    if not isinstance(data, str) or "\0" in data:
        raise ConfigurationError(f"{where} is not a text")
    return data
