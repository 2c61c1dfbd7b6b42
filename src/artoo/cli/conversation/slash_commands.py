"""The slash commands of the conversation."""

from __future__ import annotations

from enum import Enum


class SlashCommand(Enum):
    """A command, with its line in /help and the arguments that it has when none are given."""

    HELP = ("show this list", ())
    LOG = ("what tasks did (artoo log)", ("list",))
    MEMORY = ("what was learnt (artoo memory)", ())
    AUDIT = ("what the Auditor saw (artoo audit)", ())
    DIFF = ("what a task would change, that waits for you (artoo diff)", ())
    APPLY = ("apply it (artoo apply)", ())
    DISCARD = ("drop it (artoo discard)", ())
    UNDO = ("put back what a task changed (artoo undo)", ())
    RESUME = ("go on with a task that stopped (artoo resume)", ())
    STATUS = ("what waits for you (artoo status)", ())
    MODEL = ("the local model (artoo model)", ("list",))
    REWIND = ("take back the last exchange, or the last N, with the changes (/rewind N)", ())
    FORK = ("continue under another name, the other conversation stays (/fork NAME)", ())
    CLEAR = ("forget what was said in this conversation", ())
    QUIT = ("leave", ())

    def __init__(self, summary: str, defaults: tuple[str, ...]) -> None:
        self.summary = summary
        self.defaults = defaults


SLASH_COMMANDS: dict[str, SlashCommand] = {command.name.lower(): command for command in SlashCommand}
