"""The list of slash commands of a conversation, with the line of each in `/help` and its argument."""

from __future__ import annotations

from enum import Enum


class SlashCommand(Enum):
    """A slash command, with its line in /help and the arguments that it has by default."""

    HELP = ("show this list", ())
    LOG = ("list and show the logs of tasks (artoo log)", ("list",))
    MEMORY = ("show what artoo has learned (artoo memory)", ())
    AUDIT = ("show the report of the Auditor (artoo audit)", ())
    DIFF = ("show the pending changes of a task (artoo diff)", ())
    APPLY = ("apply the pending changes (artoo apply)", ())
    DISCARD = ("discard the pending changes (artoo discard)", ())
    UNDO = ("undo the changes that a task applied (artoo undo)", ())
    RESUME = ("continue a task that stopped (artoo resume)", ())
    STATUS = ("show what needs you (artoo status)", ())
    MODEL = ("list the models, or use another one from now on (/model NAME)", ())
    REWIND = ("take back the last exchange with its changes, or the last N (/rewind N)", ())
    FORK = ("continue under another name, and keep this conversation (/fork NAME)", ())
    MODE = ("which changes take effect without a question (/mode edits)", ())
    PLAN = ("show each plan before anything runs, or not", ())
    COST = ("what this conversation has cost", ())
    CONTEXT = ("what the next request is given of it", ())
    SESSIONS = ("the latest conversations", ())
    CLEAR = ("forget this conversation", ())
    QUIT = ("leave", ())

    def __init__(self, summary: str, defaults: tuple[str, ...]) -> None:
        self.summary = summary
        self.defaults = defaults


SLASH_COMMANDS: dict[str, SlashCommand] = {command.name.lower(): command for command in SlashCommand}
