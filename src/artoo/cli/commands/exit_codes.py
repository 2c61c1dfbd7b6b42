"""The exit codes of every command and what each means."""

from __future__ import annotations

ACCEPTED, FAILED, USAGE, NO_MODEL, PENDING, NEEDS_INPUT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
"""`FAILED`: a task was abandoned, problems were found, or something went wrong; `PENDING`: changes wait;
`NEEDS_INPUT`: artoo asks something that only the user can answer."""

MEANINGS = {
    ACCEPTED: "ended well; gaps, if there are any, are named",
    FAILED: "abandoned: what was reached and why it stopped is in the result",
    USAGE: "usage or configuration; nothing was started",
    NO_MODEL: "no language model could be reached",
    PENDING: "ended well, and changes wait for a yes: artoo diff, apply, discard",
    NEEDS_INPUT: "artoo asks something that only you can answer; answer it in the same conversation",
    INTERRUPTED: "interrupted",
}
"""Those of a run, for the man page."""
