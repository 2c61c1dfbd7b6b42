"""Parse and validate the `mcpServers` JSON and settings entries of MCP servers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, cast

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from artoo.contracts.errors import ConfigurationError
from artoo.sandbox.reading.programs import find_program
from artoo.settings.sections import Section

LARGEST_FILE = 1 << 20
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]{0,63}$")]


def _as_text(value: object) -> object:
    """Convert numbers and booleans to JSON text, because the files of other clients contain them where strings are
    expected."""
    return json.dumps(value) if isinstance(value, bool | int | float) else value


Text = Annotated[str, Field(strict=True, pattern=r"^[^\x00]*$"), BeforeValidator(_as_text)]


@dataclass(frozen=True, slots=True)
class Shelter:
    """The directory in which a user's own server starts if its `cwd` is not set. A server that starts in the
    project could import a module or package that a task wrote there. `apart`: directories in which the server's
    program is not searched.
    """

    directory: Path
    apart: tuple[str, ...] = ()

    def prepare(self) -> Path:
        """Create the directory and return it. Raises OSError."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.directory


@dataclass(frozen=True, slots=True)
class McpServer:
    """One server. It is a program that communicates over its standard streams (`command`), or a URL (streamable
    HTTP).

    `trust_read_only`: true if the user trusts the server's claims that a tool only reads. `shelter`: the directory
    in which it starts. It is None for a server of the project, which the user permitted to start as the project
    defines it.
    """

    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    url: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    trust_read_only: bool = False
    shelter: Shelter | None = None
    tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()

    def offers(self, tool: str) -> bool:
        """True if `tools` and `exclude_tools` permit a tool of this name."""
        wanted = not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)
        return wanted and not any(fnmatchcase(tool, pattern) for pattern in self.exclude_tools)

    def program(self) -> str | None:
        """Return the path of the program that the server starts; None if it is not found."""
        name = self.command[0]
        if "/" in name:
            directory = self.cwd or (self.shelter.directory if self.shelter is not None else ".")
            name = str(Path(directory, name))
        return find_program(name, self.shelter.apart if self.shelter is not None else ())

    @property
    def shown(self) -> str:
        """Describe the program or address for the user. The values of variables and headers are left out, because
        they may be secrets."""
        names = "".join(f" {key}=…" for key, _ in (*self.env, *self.headers))
        return f"{self.name}: {self.url or ' '.join(self.command)}{names}"


def read_servers(path: Path) -> tuple[McpServer, ...]:
    """Read the servers in a JSON file. Return none if the file does not exist. Raises ConfigurationError."""
    try:
        if not path.is_file():
            return ()
        if path.stat().st_size > LARGEST_FILE:
            raise ConfigurationError(f"{path} is larger than {LARGEST_FILE} bytes; that is no list of MCP servers")
        data: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} cannot be read as JSON: {error}") from error
    found = cast("dict[str, object]", data).get("mcpServers") if isinstance(data, dict) else None
    if found is None:
        raise ConfigurationError(f'{path} has no mcpServers; write {{"mcpServers": {{"name": {{…}}}}}}')
    return servers_of(found, str(path))


class McpEntry(Section):
    """One MCP server, as in the usual `mcpServers` JSON: a `command` with `args`, or a `url`."""

    command: str | None = Field(default=None, min_length=1)
    args: tuple[Text, ...] = ()
    env: dict[str, Text] = Field(default_factory=dict[str, str])
    cwd: Text | None = None
    url: str | None = Field(default=None, pattern=r"^https?://[^\s@]+$")
    headers: dict[str, Text] = Field(default_factory=dict[str, str])
    type: str | None = None
    disabled: bool = False
    tools: tuple[Text, ...] = ()
    excludeTools: tuple[Text, ...] = ()  # noqa: N815 (as below)
    trustReadOnly: bool = False  # noqa: N815 (the key of the file, next to those of the usual JSON)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: object) -> object:
        """Remove keys whose value is null (as in `"args": null`), which other clients write for absent keys."""
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in cast("dict[str, object]", data).items() if value is not None}

    @model_validator(mode="after")
    def _one_way(self) -> McpEntry:
        if self.type == "sse":
            raise ValueError("the old SSE transport is not offered; use streamable HTTP")
        if (self.command is None) == (self.url is None):
            raise ValueError("give either a command with args, or an http(s) url")
        return self

    def named(self, name: str) -> McpServer:
        """Convert the entry to a server with this name."""
        return McpServer(
            name,
            command=(self.command, *self.args) if self.command is not None else (),
            env=tuple(self.env.items()),
            cwd=self.cwd,
            url=self.url,
            headers=tuple(self.headers.items()),
            trust_read_only=self.trustReadOnly,
            tools=self.tools,
            exclude_tools=self.excludeTools,
        )


def servers_of(data: object, where: str) -> tuple[McpServer, ...]:
    """Return the servers of an `mcpServers` table that are not disabled. Raises ConfigurationError."""
    try:
        entries = TypeAdapter(dict[Name, McpEntry]).validate_python(data)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(map(str, ("mcpServers", *problem["loc"])))
        raise ConfigurationError(f"{where}: {place}: {problem['msg']}") from error
    return tuple(entry.named(name) for name, entry in entries.items() if not entry.disabled)
