"""The options and commands that suggestions at a task's end name on the terminal."""

from __future__ import annotations

from artoo.words.result import HowTo


def typed(talk: str = "-c") -> HowTo:
    """Return the options and commands that are suggested. `talk`: the option with which the user can continue the
    conversation. It is "" inside a conversation."""
    return HowTo("--budget {}=…", "artoo config set {} …", f'artoo {talk} "…"' if talk else "")
