"""The editor line and the settings of a conversation on a terminal, with a scripted model."""

from __future__ import annotations

import asyncio
from pathlib import Path

from cli_process import model_at
from cli_terminal import Terminal, terminal

from artoo.testing import Asked, ScriptedServer
from artoo.testing.replies import Scripted

PROMPT = "artoo>"


def until(screen: Terminal, text: str) -> None:
    """Wait for a text, and for the prompt after it."""
    screen.wait_for(text)
    while PROMPT not in screen.shown.rpartition(text)[2]:
        screen.wait_for(PROMPT, screen.shown.count(PROMPT) + 1)


async def test_a_conversation_has_settings_commands_and_lines_of_several_rows(project: Path) -> None:
    """Alt-Enter makes a new line, `!` runs a command, `@file` is a path; mode, plan and cost are shown."""
    (project / "notes.txt").write_text("milk\n")
    asked: list[str] = []

    def answer(request: Asked) -> Scripted:
        asked.append(request.user)
        return {"reply": "Noted."}

    async with ScriptedServer(answer) as server:
        with terminal("", ["chat"], project.parent / ".artoo", model_at(server), columns=120) as screen:

            async def types(line: str, text: str) -> None:
                screen.forget()
                screen.send(line)
                await asyncio.to_thread(until, screen, text)

            await asyncio.to_thread(until, screen, "/help lists commands")
            await types("/mode edits\r", "apply: edits")
            await types("/mode nothing\r", "'nothing' is not a mode")
            await types("/plan\r", "plans are shown before anything runs")
            await types("/plan\r", "plans run at once")
            await types("!echo shell-$((40+2))\r", "shell-42")
            await types("What is in @notes.txt\x1b\rand why?\r", "task 0")
            assert any("What is in notes.txt\nand why?" in text for text in asked), asked
            await types("/cost\r", "1 request")
            await types("/context\r", "1 of 1 exchanges")
            await types("/sessions\r", "continue one: artoo --session NAME")
            screen.send("/quit\r")
            assert await asyncio.to_thread(screen.end) == 0
