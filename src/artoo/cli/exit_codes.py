"""The exit codes of every command (SPEC section 12)."""

from __future__ import annotations

ACCEPTED, FAILED, USAGE, NO_MODEL, PENDING, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""`FAILED`: a task was abandoned, problems were found, or something went wrong; `PENDING`: changes wait."""
