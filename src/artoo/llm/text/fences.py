"""Fenced blocks in the text of a model (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPENING = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)$", re.MULTILINE)
_MOST_FENCES = 64
_HOLDS_FENCES = frozenset({"markdown", "md"})


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block: its place, info string and text (lines joined by newlines, none after the last; empty lines
    alone each have their own, for one is not none).

    `closed` is False when the text ended first.
    """

    start: int
    end: int
    info: str
    text: str
    closed: bool


def fences_in(text: str) -> list[Fence]:
    """Return the blocks in order. A fence closes at the first line of at least as many of its marks and nothing
    else that closes no block inside it, which is seen by its info string. A block of Markdown closes as in
    `wrapping`.
    """
    found: list[Fence] = []
    position = 0
    while len(found) < _MOST_FENCES and (opening := _OPENING.search(text, position)) is not None:
        wraps = opening.group(2).strip().lower() in _HOLDS_FENCES
        found.append(_fence(text, opening, wraps=wraps))
        position = found[-1].end
    return found


def wrapping(text: str) -> Fence | None:
    """Return the block that a text begins with, which may hold blocks itself: it ends at the last line that
    can close it, and with the text where each such line belongs to a block inside it.
    """
    opening = _OPENING.search(text)
    if opening is None or text[: opening.start()].strip():
        return None
    return _fence(text, opening, wraps=True)


def _fence(text: str, opening: re.Match[str], *, wraps: bool) -> Fence:
    marks, info = opening.group(1), opening.group(2).strip()
    start = min(opening.end() + 1, len(text))
    inside = re.compile(rf"^ {{0,3}}{re.escape(marks[0])}{{{len(marks)},}}[ \t]*([^\n`]*)$", re.MULTILINE)
    every = list(inside.finditer(text, start))
    closing = _closing(every)
    if wraps and closing and len(closing) % 2 == 0:  # pairs of marks inside, unless it was closed twice over
        twice = not text[closing[-2].end() : closing[-1].start()].strip()
        closing = closing[:-1] if twice else []
    elif not closing and not wraps:
        closing = [line for line in every if not line.group(1).strip()]
    if not closing:
        return Fence(opening.start(), len(text), info, text[start:].rstrip("\n"), closed=False)
    chosen = closing[-1 if wraps else 0]
    content = text[start : max(start, chosen.start())]
    body = content.removesuffix("\n") if content.strip("\n") else content
    return Fence(opening.start(), chosen.end(), info, body, closed=True)


def _closing(lines: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the lines of marks inside a block that close no block with an info string."""
    found: list[re.Match[str]] = []
    opened = False
    for line in lines:
        if line.group(1).strip():
            opened = True
        elif opened:
            opened = False
        else:
            found.append(line)
    return found
