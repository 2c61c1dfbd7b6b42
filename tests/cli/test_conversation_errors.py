"""What a conversation says of a failure is artoo's own error message: it holds no secret."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from cli_standin import StandIn

from artoo.cli.conversation.prompt import Prompt
from artoo.cli.conversation.repl import Conversation
from artoo.cli.conversation.talk import Talk
from artoo.cli.display import run_task as running
from artoo.cli.display.interrupts import Interrupts
from artoo.cli.display.side_channel import Aside
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.app.artoo import Artoo
from artoo.runtime.config.model import Config
from artoo.runtime.task.conversations import open_session
from artoo.words.catalogue import in_language


class Typed:
    """Gives the lines one by one, then the end of input."""

    def __init__(self, *lines: str) -> None:
        self._lines = [*lines]

    async def read(self) -> str | None:
        """The next line."""
        return self._lines.pop(0) if self._lines else None


async def test_an_error_is_shown_without_the_key_that_it_quotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The conversation goes on after it."""

    async def failing(*_: object, **__: object) -> object:
        raise ConfigurationError("the server refuses api_key=abcd1234efgh")

    monkeypatch.setattr(running, "follow_task", failing)
    terminal = running.Terminal(cast("Artoo", StandIn("accepted")), cast("Interrupts", None), Aside())
    prompt = cast("Prompt", Typed("do this", "and that"))
    text = in_language("en")
    settings = Talk(Config(), text)
    await Conversation(terminal, prompt, text, tmp_path, open_session(tmp_path), settings).hold()
    said = capsys.readouterr().err
    assert said.count("artoo: the server refuses api_key=[redacted]\n") == 2 and "abcd" not in said
