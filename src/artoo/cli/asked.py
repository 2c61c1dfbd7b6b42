"""Whether there is somebody to ask, and what they say to a question of yes or no."""

from __future__ import annotations

import sys

import click

_YES = frozenset(("y", "yes", "是", "好"))


def is_yes(said: str) -> bool:
    """Whether a line is a clear yes."""
    return said.strip().casefold() in _YES


def is_asked() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str) -> bool:
    """Only a clear yes is one; an empty line and the end of input are no."""
    click.echo(question, err=True, nl=False)
    return is_yes(sys.stdin.readline())
