"""The editable input line of a conversation with its keys, and the size of the history file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from rich.cells import chop_cells

from artoo.cli.conversation.completion import ConversationCompleter
from artoo.disk.whole import write_whole

HISTORY_NAME = "history"
LARGEST_HISTORY, KEPT_HISTORY = 256 * 1024, 64 * 1024
"""Two sizes in bytes. If the history is larger than the first, it is shortened to its last entries, which have at
most the second size."""


class Prompt:
    """Reads lines from the terminal. Only the owner of the history file can read it."""

    def __init__(self, home: Path, status: Callable[[], str] | None = None) -> None:
        """Create the prompt, which shows the text of `status` below the line. Alt-Enter inserts a line break, and
        Ctrl-R searches the history."""
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
        """Read a line. Ctrl-C clears it. Returns None at the end of input, or if Ctrl-C is pressed twice on an
        empty line."""
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

    async def read_beside(self, growing: Callable[[], list[str]], status: Callable[[], str]) -> str | None:
        """Read a line while a task runs. Returns None for Ctrl-C and at the end of input.

        The lines of `growing` and the text of `status` are shown above the line, and updated twice a second. They
        are erased afterwards.
        """

        # A toolbar is not used, because it is not shown on terminals that cannot report the position of the cursor.
        def message() -> FormattedText:
            columns = self._beside.output.get_size().columns - 1
            text = "".join(f"{chop_cells(line, columns)[0] if line else ''}\n" for line in growing())
            grey = f"{chop_cells(status(), columns)[0]}\n"
            return FormattedText([("", text), ("fg:ansibrightblack", grey), ("", "› ")])

        try:
            return await self._beside.prompt_async(message, refresh_interval=0.5, handle_sigint=False)
        except (KeyboardInterrupt, EOFError):
            return None


def _keys() -> KeyBindings:
    """Return the key binding for Alt-Enter, which inserts a line break. Enter alone sends the text."""
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def _history(path: Path) -> History:
    """Open the history file. If the home cannot be written, open a history in memory."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        shorten(path)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def shorten(path: Path) -> None:
    """Shorten a long history to its last complete entries. An entry begins with a line of the form `# time`."""
    if path.stat().st_size <= LARGEST_HISTORY:
        return
    kept = path.read_bytes()[-KEPT_HISTORY:]
    # The new beginning may be inside of an entry, and the remaining part would look like an entry of its own.
    start = kept.find(b"\n# ")
    write_whole(path, kept[start:] if start >= 0 else b"", sync=False)
