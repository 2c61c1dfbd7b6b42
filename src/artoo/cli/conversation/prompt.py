"""The line that a person types on: editing, and a history that is kept in artoo's home."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from artoo.cli.conversation.completion import ConversationCompleter
from artoo.disk.whole import write_whole

HISTORY_NAME = "history"
LARGEST_HISTORY, KEPT_HISTORY = 256 * 1024, 64 * 1024
"""Bytes: a history larger than the first is cut to its last entries, the second of these at most."""


class Prompt:
    """Reads lines from the terminal. The history file is readable by its owner only."""

    def __init__(self, home: Path, status: Callable[[], str] | None = None) -> None:
        """`status` is shown below the line. Alt-Enter makes a new line, and Ctrl-R searches the history."""
        self._session: PromptSession[str] = PromptSession(
            history=_history(home / HISTORY_NAME),
            completer=ConversationCompleter(home),
            complete_while_typing=False,
            enable_history_search=True,
            key_bindings=_keys(),
            bottom_toolbar=status,
        )
        self._beside: PromptSession[str] = PromptSession(history=self._session.history, erase_when_done=True)

    async def read(self) -> str | None:
        """Read the next line; None at the end of input. Ctrl-C clears the line, and leaves if it is empty twice."""
        emptied = False
        while True:
            try:
                return await self._session.prompt_async("artoo> ", handle_sigint=False)
            except KeyboardInterrupt:
                if emptied and not self._session.default_buffer.text:
                    return None
                emptied = not self._session.default_buffer.text
            except EOFError:
                return None

    async def read_beside(self, status: Callable[[], str]) -> str | None:
        """Return a line that is typed while a task runs; None for Ctrl-C and the end of input.

        `status` is shown above the line and asked for twice a second. The line leaves nothing on the screen.
        """

        # A toolbar is not shown where the cursor cannot be located.
        def message() -> FormattedText:
            columns = self._beside.output.get_size().columns
            return FormattedText([("fg:ansibrightblack", f"{status()[: columns - 1]}\n"), ("", "› ")])

        try:
            return await self._beside.prompt_async(message, refresh_interval=0.5, handle_sigint=False)
        except (KeyboardInterrupt, EOFError):
            return None


def _keys() -> KeyBindings:
    """Return the keys that make a new line in the text; Enter sends it."""
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _history(path: Path) -> History:
    """Open the history file; in a home that cannot be written, a history of this session only."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        shorten(path)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def shorten(path: Path) -> None:
    """Cuts a long history to its last whole entries. An entry begins with a line of the form `# time`."""
    if path.stat().st_size <= LARGEST_HISTORY:
        return
    kept = path.read_bytes()[-KEPT_HISTORY:]
    # The cut may lie inside an entry, whose rest would look like an entry of its own.
    start = kept.find(b"\n# ")
    write_whole(path, kept[start:] if start >= 0 else b"", sync=False)
