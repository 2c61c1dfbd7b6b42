"""The options and commands that suggestions at a task's end name on the terminal."""

from __future__ import annotations

from artoo.words.result import HowTo


def typed(talk: str = "-c") -> HowTo:
    """Return the options and commands. `talk`: the option that continues a conversation, or "" inside one."""
    return HowTo("--budget {}=…", "artoo config set {} …", f'artoo {talk} "…"' if talk else "")
