"""Data piped into `artoo "…"`, with its limit of 16 MiB and its wait of three seconds.

The data belong to the request, but are not a part of its text.
"""

from __future__ import annotations

import os
import select
import stat

import click

LARGEST = 16 << 20
"""Maximum number of bytes that are accepted. Larger data should be in a file."""
_PATIENCE = 3.0
"""Number of seconds to wait for the first byte of a pipe. A pipe that a service manager left open never delivers a
byte."""
_PIECE = 1 << 16


def piped_input(descriptor: int = 0) -> bytes:
    """Return the data that are piped or redirected into this process, if there are any. Raises click.UsageError."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # standard input is closed
        return b""
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return b""
    if not stat.S_ISREG(mode) and not select.select([descriptor], [], [], _PATIENCE)[0]:
        return b""
    pieces, size = list[bytes](), 0
    while piece := os.read(descriptor, _PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise click.UsageError(
                f"more than {LARGEST >> 20} MiB are piped in; put the data into a file, and name it"
            )
    return b"".join(pieces)
