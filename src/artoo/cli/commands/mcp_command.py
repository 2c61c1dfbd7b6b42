"""`artoo mcp`: serve MCP, and list, add, remove, log in to the MCP servers that artoo uses."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from artoo.cli.commands.exit_codes import FAILED
from artoo.cli.commands.options import HELP
from artoo.cli.display.sanitize import one_line, show
from artoo.cli.results.redact_output import say
from artoo.contracts.errors import ConfigurationError, ToolError
from artoo.disk.whole import write_whole

if TYPE_CHECKING:
    from artoo.tools.mcp.servers import McpServer


Table = dict[str, object]

_PORT = 8_722


@click.group(invoke_without_command=True, context_settings=HELP)
@click.option("--http", is_flag=True, help="Serve by HTTP on loopback, to clients that have the token.")
@click.option("--port", type=click.IntRange(0, 65_535), help=f"With --http (default: {_PORT}).")
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The directory of tasks, unless a client names another (default: the current one).",
)
@click.pass_context
def mcp(context: click.Context, http: bool, port: int | None, project: Path | None) -> None:
    """Serve MCP on standard input and output, so that other programs can give artoo tasks (docs/protocols.md).

    The commands manage the MCP servers whose tools artoo may use, from the configuration and mcp.json in its home.
    """
    if context.invoked_subcommand is not None:
        return
    _serve(http, port, project)


def _serve(http: bool, port: int | None, project: Path | None) -> None:
    if port is not None and not http:
        raise click.UsageError("--port is only for HTTP; add --http")
    from artoo.protocols.mcp.serving import serve  # imported here, because the SDK takes 0.5 s
    from artoo.runtime.config.loader import load_config

    at = (_PORT if port is None else port) if http else None
    asyncio.run(serve(load_config(), (project or Path.cwd()).resolve(), at, say))


serve_mcp = click.Command(
    "mcp",
    params=mcp.params,
    callback=_serve,
    help="Serve MCP on standard input and output, so that other programs can give artoo tasks (docs/protocols.md).",
    context_settings=HELP,
)
"""The command `artoo serve mcp`. It is `artoo mcp` without the subcommands that manage other servers."""


@mcp.command(name="list", context_settings=HELP)
def list_() -> None:
    """List the servers whose tools tasks may use."""
    found = _servers()
    show(
        "\n".join(one_line(server.shown) for server in found)
        or "No MCP server is configured: artoo mcp add NAME -- …"
    )


@mcp.command(context_settings={**HELP, "ignore_unknown_options": True})
@click.argument("name")
@click.argument("command", nargs=-1)
@click.option("--url", help="The address of a server with streamable HTTP.")
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="A variable of its environment (may be repeated).")
@click.option("--tool", multiple=True, metavar="PATTERN", help="Offer only tools with such a name.")
@click.option("--trust-read-only", is_flag=True, help="Trust the server's statement that a tool only reads.")
def add(
    name: str,
    command: tuple[str, ...],
    url: str | None,
    env: tuple[str, ...],
    tool: tuple[str, ...],
    trust_read_only: bool,
) -> None:
    """Add a server: artoo mcp add NAME -- COMMAND ARGUMENTS…, or artoo mcp add NAME --url URL."""
    from artoo.tools.mcp.servers import servers_of

    if bool(command) == bool(url):
        raise click.UsageError("give either a command behind --, or --url")
    entry: Table = {"url": url} if url else {"command": command[0], "args": list(command[1:])}
    if env:
        entry["env"] = dict(_pair(each) for each in env)
    if tool:
        entry["tools"] = list(tool)
    if trust_read_only:
        entry["trustReadOnly"] = True
    servers_of({name: entry}, "artoo mcp add")
    table = _table()
    if name in table:
        raise ConfigurationError(f"there is a server {name!r} already; artoo mcp remove {name} removes it")
    _write({**table, name: entry})
    show(f"{name} is added to {_file()}; artoo mcp test {name} tries it")


@mcp.command(context_settings=HELP)
@click.argument("name")
def remove(name: str) -> None:
    """Remove a server from mcp.json."""
    table = _table()
    if name not in table:
        raise ConfigurationError(f"{_file()} has no server {name!r}; artoo mcp list shows which there are")
    _write({other: entry for other, entry in table.items() if other != name})
    show(f"{name} is removed")


@mcp.command(context_settings=HELP)
@click.argument("name")
def login(name: str) -> None:
    """Log in at a server that wants OAuth: opens the browser, and keeps the tokens in artoo's home."""
    server = _the_server(name)
    if server.url is None:
        raise ConfigurationError(f"{name} is a program and needs no login")
    asyncio.run(_log_in(server))
    show(f"logged in at {name}; artoo mcp logout {name} forgets it")


@mcp.command(context_settings=HELP)
@click.argument("name")
def logout(name: str) -> None:
    """Forget the tokens of a server."""
    from artoo.tools.mcp.oauth import token_file

    path = token_file(_the_server(name))
    if path is None or not path.exists():
        raise ConfigurationError(f"there is no login at {name}")
    path.unlink()
    show(f"logged out of {name}")


@mcp.command(context_settings=HELP)
@click.argument("name")
def prompts(name: str) -> None:
    """Show the prompts of a server. `artoo "/NAME:PROMPT key=value"` uses one as a request."""
    from artoo.tools.mcp.connection import ask_once

    found = asyncio.run(ask_once(_the_server(name), lambda connection: connection.prompts()))
    lines = [one_line(f"/{name}:{prompt} {said}".rstrip()) for prompt, said in found]
    show("\n".join(lines) or f"{name} has no prompts")


def _the_server(name: str) -> McpServer:
    found = next((server for server in _servers() if server.name == name), None)
    if found is None:
        raise ConfigurationError(f"there is no server {name!r}; artoo mcp list shows which there are")
    return found


async def _log_in(server: McpServer) -> None:
    import webbrowser

    from artoo.tools.mcp.connection import ask_once
    from artoo.tools.mcp.oauth import LOGIN_SECONDS, logging_in

    async def shown(address: str) -> None:
        show(f"Log in with your browser at:\n  {address}")
        await asyncio.to_thread(webbrowser.open, address)

    async with logging_in(server, shown) as auth:
        await ask_once(server, lambda connection: connection.tools(), seconds=LOGIN_SECONDS, auth=auth)


@mcp.command(context_settings=HELP)
@click.argument("name", required=False)
@click.pass_context
def test(context: click.Context, name: str | None) -> None:
    """Start a server (or all), and show the tools that it offers. Exit code 1 when one does not answer."""
    chosen = [server for server in _servers() if name in (None, server.name)]
    if not chosen:
        raise ConfigurationError(f"there is no server {name!r}" if name else "no MCP server is configured")
    context.exit(0 if asyncio.run(_try(chosen)) else FAILED)


async def _try(servers: list[McpServer]) -> bool:
    from artoo.tools.mcp.connection import McpConnection

    good = True
    async with asyncio.TaskGroup() as group:
        for server in servers:
            connection = McpConnection(server)
            running = group.create_task(connection.run())
            try:
                names = [tool.name for tool in await connection.tools() if server.offers(tool.name)]
                of = f" of {connection.tools_there}" if connection.tools_there > len(names) else ""
                show(f"{server.name}: {len(names)}{of} tools: {one_line(', '.join(names))}")
            except ToolError as error:
                good = False
                show(one_line(str(error)))
            running.cancel()
    return good


def _servers() -> tuple[McpServer, ...]:
    from artoo.runtime.app.mcp import own_servers
    from artoo.runtime.config.loader import load_config

    return own_servers(load_config())


def _file() -> Path:
    from artoo.runtime.app.home import default_home
    from artoo.runtime.app.mcp import HOME_FILE

    return default_home(os.environ) / HOME_FILE


def _table() -> Table:
    """Return the table of servers in the file. Raises ConfigurationError if it cannot be read."""
    from artoo.tools.mcp.servers import read_servers

    file = _file()
    read_servers(file)
    if not file.is_file():
        return {}
    return cast("dict[str, Table]", json.loads(file.read_bytes()))["mcpServers"]


def _write(table: Table) -> None:
    """Write the table of servers to the file, which only its owner can read. Other fields of the file are kept."""
    file = _file()
    whole = cast(Table, json.loads(file.read_bytes())) if file.is_file() else {}
    # The variables of a server may contain secrets, so only the owner may read the file.
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = json.dumps({**whole, "mcpServers": table}, indent=2, ensure_ascii=False) + "\n"
    write_whole(file, text.encode(), mode=0o600)


def _pair(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--env {given!r} is not of the form NAME=VALUE")
    return name, value
