"""Summarise a long approval question close to its answer, at most eight lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from artoo.contracts.confirmation import ConfirmationRequest

MOST = 8
"""The most parts of a summary. A screen of 24 lines has room for them, the title and the prompt."""

LONGEST = 100
"""The most characters of one part."""

SEEN_AT_ONCE = 20
"""The most rows (of 80 characters) of a question that fit in a window without scrolling."""


def beside(request: ConfirmationRequest) -> tuple[str, ...]:
    """Return the summary of a question that is too long for one window, and nothing for a shorter question."""
    rows = sum(1 + len(line) // 80 for line in request.details)
    return parts(request) if rows > SEEN_AT_ONCE else ()


def parts(request: ConfirmationRequest) -> tuple[str, ...]:
    """Return the first line of each part (a recipient, a path, a host, a text), in their order.

    If there are more than `MOST` parts, short parts are preferred, and the others are counted. An indented line
    belongs to the part above it, so a text of many lines cannot add a part.
    """
    found = list(_parts(request.details))
    kept = sorted(range(len(found)), key=lambda at: (found[at][1] > 0 or len(found[at][0]) > LONGEST, at))[:MOST]
    said = [_short(*found[at]) for at in sorted(kept)]
    return (*said, f"… +{len(found) - len(kept)}") if len(found) > len(kept) else tuple(said)


def _parts(details: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield the first line of each part, with the number of indented lines below it."""
    head, more = None, 0
    for line in details:
        if head is not None and line.startswith("  "):
            more += 1
            continue
        if head is not None:
            yield head, more
        head, more = line, 0
    if head is not None:
        yield head, more


def _short(line: str, more: int) -> str:
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} … {line[3 - LONGEST // 2 :]}"
    return f"{line} … +{more}" if more else line
