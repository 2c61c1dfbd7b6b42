"""Output for programs, and error messages, without secrets, like the logs.

Reviews and answers are for the user, who could not judge them with parts removed. They are printed unchanged.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from artoo.redaction import Redactor


def say(text: str) -> None:
    """Print a line of artoo's own on standard error."""
    click.echo(f"artoo: {outward(text)}", err=True)


def outward(text: str) -> str:
    """Return `text` without secrets, by value and by format."""
    return _redactor().text(text)


@cache
def _redactor() -> Redactor:
    from artoo.redaction import Redactor, secret_values

    return Redactor(secret_values(os.environ))
