"""Crash files with tracebacks (size and number limited), and warnings of the log as single lines.

For an unexpected error, the user reads only one line.
"""

from __future__ import annotations

import logging
import os
import traceback
from contextlib import suppress

import click

from artoo.cli.results.redact_output import outward
from artoo.runtime.app.home import default_home

_LONGEST = 300
_LARGEST_FILE = 1_000_000
"""Maximum number of bytes of tracebacks that one process writes. If an error occurs again and again, its first
tracebacks are enough."""
_MOST_FILES = 100
"""Maximum number of files that are kept. Each process writes one. A limit is needed because a process that is
started every minute may fail every time."""


def kept(error: BaseException) -> str:
    """Append the traceback of an error to the file of this process. Returns a sentence for the user with the name
    of the file."""
    place = default_home(os.environ) / "defects" / f"{os.getpid()}.txt"
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with place.open("a", encoding="utf-8") as file:
            if file.tell() < _LARGEST_FILE:
                file.write(outward("".join(traceback.format_exception(error))))
    except OSError:
        return "report what you did"
    with suppress(OSError):  # another process may be deleting old files too
        for old in sorted(place.parent.glob("*.txt"), key=lambda one: one.stat().st_mtime_ns)[:-_MOST_FILES]:
            old.unlink()
    return f"where it happened stands in {place}; report it"


def named(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    said = str(error).partition("\n")[0][:_LONGEST]
    return f"{type(error).__name__}: {outward(said)}"


class InLines(logging.Handler):
    """A log handler that prints each warning as one line on standard error. The traceback of an error is left
    out."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record. Never raises, because a warning that cannot be printed must not end the program."""
        try:
            line = outward(record.getMessage())
            error = record.exc_info[1] if record.exc_info else None
            if error is not None:
                line = f"{line} (a defect in artoo, {named(error)}; {kept(error)})"
            click.echo(line, err=True)
        except Exception:  # noqa: BLE001 (what logging does with an error of a handler)
            self.handleError(record)


def tell_in_lines() -> None:
    """Install the handler that shows artoo's own warnings to the user, one line each."""
    logger = logging.getLogger("artoo")
    if not any(isinstance(handler, InLines) for handler in logger.handlers):
        logger.addHandler(InLines())
