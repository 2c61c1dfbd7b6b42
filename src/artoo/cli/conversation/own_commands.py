"""Expansion of the user's own slash commands and MCP prompts to requests, after approval of a project's.

This works in a conversation and on the command line.
"""

from __future__ import annotations

import sys
from pathlib import Path

from artoo.cli.conversation.yes_no import agreed, is_asked
from artoo.cli.display.sanitize import printable
from artoo.cli.display.screen import show_lines
from artoo.contracts.errors import ConfigurationError
from artoo.runtime.extensions.prompt_files import PromptFile, command_in, prompt_files


def known_commands(home: Path) -> dict[str, PromptFile]:
    """Return the user's slash commands that can be used here. Return none if their folders cannot be read."""
    try:
        return prompt_files(home, Path.cwd())
    except (ConfigurationError, OSError):
        return {}


async def as_request(text: str, home: Path, project: Path | None = None) -> str:
    """Return the request that results from a slash command of the user. Any other text is returned unchanged.

    A project's command needs approval at its first use, and after each change. Raises ConfigurationError if the
    command is not approved.
    """
    named = command_in(text)
    if named is None:
        return text
    server, colon, prompt = named[0].partition(":")
    if colon and server and prompt:
        return await _prompt_of_server(server, prompt, named[1])
    found = prompt_files(home, project or Path.cwd()).get(named[0])
    if found is None:
        return text
    if found.of_project:
        await _require_approval(found, home)
    return found.request(named[1])


async def _prompt_of_server(name: str, prompt: str, given: str) -> str:
    """Return the text of a prompt that one of the user's MCP servers offers. The arguments have the form KEY=VALUE.

    Raises ConfigurationError if there is no such server, or if an argument has another form.
    """
    import shlex

    from artoo.runtime.app.mcp import own_servers
    from artoo.runtime.config.loader import load_config
    from artoo.tools.mcp.connection import ask_once

    found = next((one for one in own_servers(load_config()) if one.name == name), None)
    if found is None:
        raise ConfigurationError(f"there is no MCP server {name!r}; artoo mcp list shows which there are")
    try:
        pairs = [word.partition("=") for word in shlex.split(given)]
    except ValueError as error:
        raise ConfigurationError(f"the arguments cannot be read: {error}") from error
    if wrong := [key for key, equals, _ in pairs if not equals]:
        raise ConfigurationError(f"{wrong[0]!r} is not of the form KEY=VALUE (artoo mcp prompts {name})")
    known = {key: value for key, _, value in pairs}
    return await ask_once(found, lambda connection: connection.prompt(prompt, known))


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
