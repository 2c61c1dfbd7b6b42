"""What a person types on a terminal where another surface has no options and no commands."""

from __future__ import annotations

from artoo.words.result import HowTo


def typed(talk: str = "-c") -> HowTo:
    """`talk`: the option that goes on with the conversation; empty inside of one."""
    return HowTo("--budget {}=…", "artoo config set {} …", f'artoo {talk} "…"' if talk else "")
