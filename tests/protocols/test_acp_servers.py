"""MCP servers that an editor passes along: they are that session's, and never trusted on their own word."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from acp.exceptions import RequestError
from acp.helpers import text_block
from acp.schema import EnvVariable, HttpMcpServer, McpServerStdio, SseMcpServer
from editor import Connected, Editor, connected
from hosting import Place

from artoo.tasklog.reader import list_tasks

SERVER = Path(__file__).parent.parent / "tools" / "mcp_server.py"


def notes(place: Place, name: str = "my notes") -> McpServerStdio:
    """A program that keeps notes in a file beside the project."""
    env = [EnvVariable(name="NOTES", value=str(place.root / "notes.txt"))]
    return McpServerStdio(name=name, command=sys.executable, args=[str(SERVER)], env=env)


async def noted(here: Connected, place: Place, session: str, text: str) -> str:
    """Prompts for a note, and returns why it stopped."""
    said = text_block(f"use: my_notes_note {text}")
    return (await here.agent.prompt(prompt=[said], session_id=session)).stop_reason


async def test_its_tools_are_offered_and_asked_about(place: Place) -> None:
    """A tool of a passed server runs after a yes of this editor's person."""
    editor = Editor("once")
    async with connected(place, editor) as here:
        opened = await here.agent.new_session(cwd=str(place.project), mcp_servers=[notes(place)])
        await noted(here, place, opened.session_id, "milk")
    assert (place.root / "notes.txt").exists()
    (asked, options), *_ = editor.asked
    assert "note" in (asked.title or "")
    assert {one.option_id for one in options} == {"once", "task", "no"}


async def test_a_tool_that_says_it_only_reads_is_asked_about(place: Place) -> None:
    """What a passed server says of itself is not believed: it is no server of artoo's own configuration."""
    editor = Editor("once")
    async with connected(place, editor) as here:
        opened = await here.agent.new_session(cwd=str(place.project), mcp_servers=[notes(place)])
        said = text_block("use: my_notes_secrets now")
        await here.agent.prompt(prompt=[said], session_id=opened.session_id)
    assert editor.asked


async def test_what_cannot_be_a_server(place: Place) -> None:
    """The old transport, an address that is none, and too many are refused with what would be right; no session."""
    async with connected(place, Editor()) as here:
        sse = SseMcpServer(type="sse", name="old", url="http://127.0.0.1:9/sse", headers=[])
        ftp = HttpMcpServer(type="http", name="odd", url="ftp://127.0.0.1/", headers=[])
        for given, said in (([sse], "sse"), ([ftp], "http"), ([notes(place)] * 17, "16")):
            with pytest.raises(RequestError, match=said):
                await here.agent.new_session(cwd=str(place.project), mcp_servers=given)  # type: ignore[arg-type]
    assert not list_tasks(place.home)
