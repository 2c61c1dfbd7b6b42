"""Yes-or-no questions on a terminal, with the words that count as yes."""

from __future__ import annotations

import sys

import click

from artoo.cli.display.keyboard import Keyboard

_YES = frozenset(("y", "yes", "是", "好"))


def is_yes(said: str) -> bool:
    """Return whether a line is a clear yes."""
    return said.strip().casefold() in _YES


def is_asked() -> bool:
    """Return whether a user at a terminal can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def agreed(question: str) -> bool:
    """Ask a question. Return whether the answer is yes. Only a clear yes counts. An empty line, or the end of
    input, means no.

    Ctrl-C ends the wait at once, because reading does not block the event loop.
    """
    click.echo(question, err=True, nl=False)
    return is_yes(await Keyboard(sys.stdin).read())
