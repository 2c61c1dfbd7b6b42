"""Where MCP servers start: what a task made is no part of the person's own, and a project's are the project's."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from gate_world import Person

from artoo.contracts.confirmation import Consent
from artoo.contracts.errors import ToolError
from artoo.runtime.app.mcp import agreed_servers, own_servers
from artoo.runtime.config.model import Config
from artoo.testing.asking import AskPerson
from artoo.tools.approval.gate import Gate
from artoo.tools.mcp.connection import McpConnection
from artoo.tools.mcp.servers import McpServer

SERVER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("id") is None:
        continue
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        named = {"name": "x", "version": "1"}
        said = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": named}
    else:
        where = json.dumps([os.getcwd(), os.environ["PATH"]])
        said = {"tools": [{"name": "where", "description": where, "inputSchema": {"type": "object"}}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": said}), flush=True)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where artoo is started: its environment is active, and a task wrote modules and programs there."""
    project = tmp_path / "project"
    programs = project / ".venv" / "bin"
    programs.mkdir(parents=True)
    (project / "notes_server.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{SERVER}")
    for name in ("python3", "only-here"):
        (programs / name).write_text(f'#!/bin/sh\ntouch {tmp_path}/ran\nexec {sys.executable} "$@"\n')
        (programs / name).chmod(0o755)
    (tmp_path / "server.py").write_text(SERVER)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.chdir(project)
    return project


def config(project: Path, **entry: object) -> Config:
    made = Config.model_validate({"workspace": str(project.parent / "workspace"), "mcp_servers": {"notes": entry}})
    return made.at_home(project.parent / "artoo")


async def started(server: McpServer) -> tuple[str, list[str]]:
    """Where a server says that it is, and its PATH."""
    connection = McpConnection(server, connect_seconds=10.0)
    running = asyncio.ensure_future(connection.run())
    try:
        (tool,) = await connection.tools()
    finally:
        running.cancel()
        await asyncio.wait([running])
    directory, path = json.loads(tool.description or "")
    return directory, path.split(os.pathsep)


async def test_a_server_of_the_persons_own_starts_in_artoos_home(project: Path) -> None:
    """And neither its program nor what it starts itself is found in the project."""
    made = config(project, command="python3", args=[str(project.parent / "server.py")])
    directory, path = await started(own_servers(made)[0])
    assert directory == str(made.home / "mcp") and (made.home / "mcp").stat().st_mode & 0o077 == 0
    assert f"{project}/.venv/bin" not in path and os.path.dirname(str(shutil.which("sh"))) in path  # noqa: PTH120
    assert not (project.parent / "ran").exists()


async def test_a_module_of_the_project_is_not_a_servers(project: Path) -> None:
    """`python3 -m NAME` finds what is installed, and not what a task wrote."""
    made = config(project, command="python3", args=["-m", "notes_server"])
    with pytest.raises(ToolError):
        await started(own_servers(made)[0])
    assert not (project.parent / "ran").exists()


async def test_cwd_says_where_else(project: Path) -> None:
    """An absolute one is taken as it is; a relative one begins in the project of the task."""
    gate, other = Gate(AskPerson(Person([]))), project.parent / "other"
    other.mkdir()
    for cwd, expected in ((".", other), (str(project.parent), project.parent)):
        entry = {"command": sys.executable, "args": [str(project.parent / "server.py")], "cwd": cwd}
        (server,) = await agreed_servers(other, own_servers(config(project, **entry)), gate)
        assert (await started(server))[0] == str(expected)


async def test_a_projects_own_start_in_the_project(project: Path, tmp_path: Path) -> None:
    """Wherever artoo was started, with the whole PATH: a person agreed to start what the project has."""
    other = tmp_path / "other"
    other.mkdir()
    entry = {"command": "only-here", "args": [str(tmp_path / "server.py")]}
    (other / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": entry}}))
    (server,) = await agreed_servers(other, (), Gate(AskPerson(Person([Consent.ONCE]))))
    directory, path = await started(server)
    assert directory == str(other) and f"{project}/.venv/bin" in path
