"""What programs read of artoo, and what it says of its own failures: without secrets, as the logs are.

A review and an answer are for the person: what they show stays as it is, or nobody could judge it.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from artoo.redaction import Redactor


def say(text: str) -> None:
    """A line of artoo's own on standard error."""
    click.echo(f"artoo: {outward(text)}", err=True)


def outward(text: str) -> str:
    """`text` without secrets, by value and by format."""
    return _redactor().text(text)


@cache
def _redactor() -> Redactor:
    from artoo.redaction import Redactor, secret_values

    return Redactor(secret_values(os.environ))
