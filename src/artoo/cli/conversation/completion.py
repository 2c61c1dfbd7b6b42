"""Tab completion of slash commands, the latest 20 task ids, and files in a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from artoo.cli.conversation.own_commands import known_commands
from artoo.cli.conversation.slash_commands import SLASH_COMMANDS, SlashCommand
from artoo.cli.results.task_names import tasks_at

_NAMING_TASKS = (
    SlashCommand.DIFF,
    SlashCommand.APPLY,
    SlashCommand.DISCARD,
    SlashCommand.UNDO,
    SlashCommand.RESUME,
)
_MOST_TASKS = 20


class ConversationCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, home: Path) -> None:
        """Create a completer. `home`: artoo's own directory, whose tasks are completed by their ids."""
        self._home = home
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Offer slash commands at the beginning of a line, ids after a command that takes a task, and paths at any
        other place."""
        line, word = document.text_before_cursor, document.get_word_before_cursor(WORD=True)
        if line.startswith("/") and " " not in line:
            names = dict.fromkeys((*SLASH_COMMANDS, *known_commands(self._home)))
            yield from (_of(name, line[1:]) for name in names if name.startswith(line[1:]))
            return
        command = SLASH_COMMANDS.get(line[1:].partition(" ")[0]) if line.startswith("/") else None
        # For these commands, only the first argument is the id of a task.
        if command in _NAMING_TASKS and len(line.split()) + line.endswith(" ") == 2:
            yield from self._tasks(word)
            return
        yield from self._paths.get_completions(Document(word.removeprefix("@")), complete_event)

    def _tasks(self, begun: str) -> Iterator[Completion]:
        names = (name for name in tasks_at(self._home, _MOST_TASKS) if name.startswith(begun))
        yield from (_of(name, begun) for name in names)


def _of(whole: str, begun: str) -> Completion:
    return Completion(whole, start_position=-len(begun))
