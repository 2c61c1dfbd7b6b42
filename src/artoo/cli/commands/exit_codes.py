"""The exit codes of all commands (0 done, 1 failed, 2 usage, 3 no model, 4 pending, 5 needs input, 130 stopped)."""

from __future__ import annotations

ACCEPTED, FAILED, USAGE, NO_MODEL, PENDING, NEEDS_INPUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
"""The exit codes. `FAILED`: a task was abandoned, problems were found, or an error occurred. `PENDING`: changes
need approval. `NEEDS_INPUT`: artoo asks a question that no one but the user can answer."""
