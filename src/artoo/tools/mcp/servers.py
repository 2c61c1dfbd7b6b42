"""The MCP servers of the usual `mcpServers` JSON, read strictly, by name."""

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
    """Write numbers and booleans as JSON does, because files of other clients have them where texts belong."""
    return json.dumps(value) if isinstance(value, bool | int | float) else value


Text = Annotated[str, Field(strict=True, pattern=r"^[^\x00]*$"), BeforeValidator(_as_text)]


@dataclass(frozen=True, slots=True)
class Shelter:
    """The directory in which a server of the user's own starts unless its `cwd` says otherwise: nothing that a task
    made can be taken there for a module or a package of the server. `apart`: where its program is not taken from.
    """

    directory: Path
    apart: tuple[str, ...] = ()

    def prepare(self) -> Path:
        """Make the directory, and returns it. Raises OSError."""
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
    tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()

    def offers(self, tool: str) -> bool:
        """True if the user wants a tool of this name: `tools` and `exclude_tools` are patterns."""
        wanted = not self.tools or any(fnmatchcase(tool, pattern) for pattern in self.tools)
        return wanted and not any(fnmatchcase(tool, pattern) for pattern in self.exclude_tools)

    def program(self) -> str | None:
        """Return the program that it starts; None if it is not there."""
        name = self.command[0]
        if "/" in name:
            directory = self.cwd or (self.shelter.directory if self.shelter is not None else ".")
            name = str(Path(directory, name))
        return find_program(name, self.shelter.apart if self.shelter is not None else ())

    @property
    def shown(self) -> str:
        """Return what would be started or reached, for the user. Values of variables and headers are left out."""
        names = "".join(f" {key}=…" for key, _ in (*self.env, *self.headers))
        return f"{self.name}: {self.url or ' '.join(self.command)}{names}"


def read_servers(path: Path) -> tuple[McpServer, ...]:
    """Read the servers of a JSON file; none if there is no such file. Raises ConfigurationError."""
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
        """Read `"args": null` as other clients write it: as if the key were not there."""
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
        """Return the server under a name."""
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
    """Return the servers of an `mcpServers` table, without those that are disabled. Raises ConfigurationError."""
    try:
        entries = TypeAdapter(dict[Name, McpEntry]).validate_python(data)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(map(str, ("mcpServers", *problem["loc"])))
        raise ConfigurationError(f"{where}: {place}: {problem['msg']}") from error
    return tuple(entry.named(name) for name, entry in entries.items() if not entry.disabled)
