"""MCP servers that an editor passes along: they are that session's, and never trusted on their own word."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from acp.exceptions import RequestError
from acp.helpers import text_block
from acp.schema import EnvVariable, HttpMcpServer, McpServerStdio, SseMcpServer, ToolCallStart
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


@pytest.mark.parametrize(("says", "kept"), [("once", True), ("no", False)])
async def test_its_tools_are_offered_and_asked_about(place: Place, says: str, kept: bool) -> None:
    """A tool of a passed server runs after a yes of this editor's person, and not after a no."""
    editor = Editor(says)
    async with connected(place, editor) as here:
        opened = await here.agent.new_session(cwd=str(place.project), mcp_servers=[notes(place)])
        await noted(here, place, opened.session_id, "milk")
    assert (place.root / "notes.txt").exists() is kept
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


async def test_another_session_has_not_its_tools(place: Place) -> None:
    """A session without servers, beside one with them, is offered none; a session that is loaded has what comes."""
    editor = Editor("once")
    async with connected(place, editor) as here:
        first = (await here.agent.new_session(cwd=str(place.project), mcp_servers=[notes(place)])).session_id
        other = (await here.agent.new_session(cwd=str(place.project))).session_id
        await noted(here, place, other, "beer")
        assert not (place.root / "notes.txt").exists()
        await noted(here, place, first, "milk")
        await here.agent.load_session(cwd=str(place.project), session_id=other, mcp_servers=[notes(place)])
        await noted(here, place, other, "bread")
    assert (place.root / "notes.txt").read_text().split() == ["milk", "bread"]


async def test_a_server_that_cannot_be_started(place: Place) -> None:
    """Its tools are not there, and the session works on."""
    editor = Editor("apply")
    broken = McpServerStdio(name="broken", command="/nowhere/at/all", args=[], env=[])
    gone = HttpMcpServer(type="http", name="gone", url="http://127.0.0.1:9/mcp", headers=[])
    async with connected(place, editor) as here:
        opened = await here.agent.new_session(cwd=str(place.project), mcp_servers=[broken, gone, broken])
        said = text_block("run: echo made > made.txt")
        answer = await here.agent.prompt(prompt=[said], session_id=opened.session_id)
    assert answer.stop_reason == "end_turn"
    assert place.text("made.txt") == "made\n"
    assert editor.of(ToolCallStart)


async def test_what_cannot_be_a_server(place: Place) -> None:
    """The old transport, an address that is none, and too many are refused with what would be right; no session."""
    async with connected(place, Editor()) as here:
        sse = SseMcpServer(type="sse", name="old", url="http://127.0.0.1:9/sse", headers=[])
        ftp = HttpMcpServer(type="http", name="odd", url="ftp://127.0.0.1/", headers=[])
        for given, said in (([sse], "sse"), ([ftp], "http"), ([notes(place)] * 17, "16")):
            with pytest.raises(RequestError, match=said):
                await here.agent.new_session(cwd=str(place.project), mcp_servers=given)  # type: ignore[arg-type]
    assert not list_tasks(place.home)
