"""The user's own slash commands, in a conversation and on the command line."""

from __future__ import annotations

import sys
from pathlib import Path

from artoo.cli.conversation.yes_no import agreed, is_asked
from artoo.cli.display.sanitize import printable
from artoo.cli.display.screen import show_lines
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.extensions.prompt_files import PromptFile, command_in, prompt_files


def known_commands(home: Path) -> dict[str, PromptFile]:
    """Return the slash commands that can be used here; none if their folders cannot be read."""
    try:
        return prompt_files(home, Path.cwd())
    except (ConfigurationError, OSError):
        return {}


async def as_request(text: str, home: Path, project: Path | None = None) -> str:
    """Return the request that a slash command of the user stands for, and any other text unchanged.

    A project's command is asked about the first time, and after each change. Raises ConfigurationError when it is
    not approved.
    """
    named = command_in(text)
    if named is None:
        return text
    found = prompt_files(home, project or Path.cwd()).get(named[0])
    if found is None:
        return text
    if found.of_project:
        await _require_approval(found, home)
    return found.request(named[1])


async def _require_approval(found: PromptFile, home: Path) -> None:
    from artoo.runtime.app.skill_selection import Agreed

    answers = Agreed(home)
    said = answers.of(found.file)
    if said is None and is_asked():
        lines = (f"  {line}" for line in printable(found.body).splitlines())
        show_lines([f"? The project here brings /{found.name}, whose text is:", *lines], sys.stderr, painted=True)
        said = await agreed("Use it, as it is now? [y]es, [N]o: ")
        answers.note((found.file,), yes=said)
    if not said:
        why = "is not approved" if said is None else "was refused"
        raise ConfigurationError(
            f"/{found.name} of this project {why} ({found.file.folder}); read it, then: artoo trust accept"
        )
