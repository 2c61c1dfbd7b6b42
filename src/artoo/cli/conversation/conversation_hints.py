"""The ways to say something to artoo on a terminal: options and commands."""

from __future__ import annotations

from artoo.words.result import HowTo


def typed(talk: str = "-c") -> HowTo:
    """Return the ways. `talk`: the option that continues the conversation; empty inside one."""
    return HowTo("--budget {}=…", "artoo config set {} …", f'artoo {talk} "…"' if talk else "")
