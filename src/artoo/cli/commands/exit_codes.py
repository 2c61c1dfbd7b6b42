"""The exit codes of every command and what each means."""

from __future__ import annotations

ACCEPTED, FAILED, USAGE, NO_MODEL, PENDING, NEEDS_INPUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
"""`FAILED`: a task was abandoned, problems were found, or something went wrong; `PENDING`: changes wait;
`NEEDS_INPUT`: artoo asks something that only the user can answer."""
