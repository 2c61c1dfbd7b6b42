"""Redaction of secrets in standard error, error messages and JSON output, as in the logs.

Reviews and answers are printed without redaction, because the user could not judge them if parts were missing.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from artoo.redaction import Redactor


def say(text: str) -> None:
    """Print one of artoo's own messages on standard error, with secrets redacted."""
    click.echo(f"artoo: {outward(text)}", err=True)


def outward(text: str) -> str:
    """Return `text` with secrets redacted. Secrets are recognised by their known values and by their format."""
    return _redactor().text(text)


@cache
def _redactor() -> Redactor:
    from artoo.redaction import Redactor, secret_values

    return Redactor(secret_values(os.environ))
