"""What is piped into `artoo "…"`: material for the request, not a part of its words."""

from __future__ import annotations

import os
import select
import stat

import click

LARGEST = 16 << 20
"""Bytes that are read; more belongs in a file."""
_PATIENCE = 3.0
"""Seconds in which a pipe must have said something: one that a service manager left open never will."""
_PIECE = 1 << 16


def piped_input(descriptor: int = 0) -> bytes:
    """Return what is piped or redirected into this process; nothing where nothing is. Raises click.UsageError."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # it is closed
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
