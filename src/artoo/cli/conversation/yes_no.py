"""Whether there is somebody to ask, and what they say to a question of yes or no."""

from __future__ import annotations

import sys

import click

from artoo.cli.display.keyboard import Keyboard

_YES = frozenset(("y", "yes", "是", "好"))


def is_yes(said: str) -> bool:
    """Whether a line is a clear yes."""
    return said.strip().casefold() in _YES


def is_asked() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def agreed(question: str) -> bool:
    """Only a clear yes is one; an empty line and the end of input are no.

    Ctrl-C ends the wait at once: a read that blocks would keep the loop from it until the answer is there.
    """
    click.echo(question, err=True, nl=False)
    return is_yes(await Keyboard(sys.stdin).read())
