"""Parse slash commands in Markdown, and fill in `$1` and `$ARGUMENTS`.

They are Markdown files that contain a request with placeholders for arguments.

    ---
    description: Review one file
    ---
    Review $1 for mistakes. What to look at: $ARGUMENTS

`$1` to `$9` stand for the words after the command, and `$ARGUMENTS` stands for all of them. If the file contains no
placeholder, the arguments are appended to its text.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from artoo.contracts.errors import ConfigurationError
from artoo.runtime.extensions.project_files import COMMANDS_FOLDER, HOME_COMMANDS, ProjectFile, command_files

_FENCE = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_DESCRIPTION = re.compile(r"^description:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_ROOM = re.compile(r"\$(ARGUMENTS|[1-9])")
_SHOWN = 70


@dataclass(frozen=True, slots=True)
class PromptFile:
    """One slash command. `of_project`: true if it belongs to the project. It must be approved before it is used."""

    file: ProjectFile
    of_project: bool

    @property
    def name(self) -> str:
        """Return the command's name, without the slash."""
        return self.file.name

    @property
    def body(self) -> str:
        """Return the text without its front matter."""
        return _FENCE.sub("", self.file.text, count=1).strip()

    @property
    def description(self) -> str:
        """Return the description from the front matter, or else the beginning of the text."""
        head = _FENCE.match(self.file.text)
        found = _DESCRIPTION.search(head.group(1)) if head is not None else None
        words = found.group(1).strip("\"'") if found is not None else " ".join(self.body.split())
        return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"

    def request(self, arguments: str) -> str:
        """Return the request with the arguments inserted. Raises ConfigurationError if the file is empty."""
        words, body = _words(arguments), self.body
        if not body:
            raise ConfigurationError(f"{self.file.folder} is empty, so /{self.name} asks for nothing")

        def filled(match: re.Match[str]) -> str:
            key = match.group(1)
            if key == "ARGUMENTS":
                return arguments
            return words[int(key) - 1] if int(key) <= len(words) else ""

        if _ROOM.search(body):
            return _ROOM.sub(filled, body).strip()
        return f"{body}\n\n{arguments}".strip()


def prompt_files(home: Path, project: Path) -> dict[str, PromptFile]:
    """Return all slash commands by name. If two have the same name, the user's own command is used. Blocking.

    Raises ConfigurationError for a folder that cannot be read.
    """
    own, folder = home / HOME_COMMANDS, project / COMMANDS_FOLDER
    theirs = {each.name: PromptFile(each, True) for each in command_files(folder, project)}
    return theirs | {each.name: PromptFile(each, False) for each in command_files(own, own)}


def command_in(text: str) -> tuple[str, str] | None:
    """Return the name and the arguments if a request has the form of a slash command. Return None for any other
    request."""
    first, _, rest = text.strip().partition(" ")
    if not first.startswith("/") or "/" in first[1:] or not first[1:]:
        return None
    return first[1:], rest.strip()


def _words(arguments: str) -> list[str]:
    """Split arguments as a shell does. If a quote is not closed, the text is split at whitespace."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()
