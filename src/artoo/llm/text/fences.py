"""Fenced blocks in what a model wrote (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

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


Begins = Callable[[str], bool]
"""Whether what follows a line of marks, up to the next one, is no text of a block any more."""


def _never(between: str) -> bool:
    return False


def fences_in(text: str, is_next: Begins = _never) -> list[Fence]:
    """The blocks in order. A fence closes at the first line of at least as many of its marks and nothing else that
    closes no block inside it, which is seen by its info string; one of Markdown as `wrapping` has it.
    """
    found: list[Fence] = []
    position = 0
    while len(found) < _MOST_FENCES and (opening := _OPENING.search(text, position)) is not None:
        wraps = opening.group(2).strip().lower() in _HOLDS_FENCES
        found.append(_fence(text, opening, is_next, wraps=wraps))
        position = found[-1].end
    return found


def wrapping(text: str, is_next: Begins = _never) -> Fence | None:
    """The block that the text begins with, as one around words that may hold blocks: it ends at the last line that
    can close it, and with the text where each such line belongs to a block inside it. The first such line that
    something else follows (`is_next`) is its end: what stands behind it was never meant to be in the block.
    """
    opening = _OPENING.search(text)
    if opening is None or text[: opening.start()].strip():
        return None
    return _fence(text, opening, is_next, wraps=True)


def _fence(text: str, opening: re.Match[str], is_next: Begins, *, wraps: bool) -> Fence:
    marks, info = opening.group(1), opening.group(2).strip()
    start = min(opening.end() + 1, len(text))
    inside = re.compile(rf"^ {{0,3}}{re.escape(marks[0])}{{{len(marks)},}}[ \t]*([^\n`]*)$", re.MULTILINE)
    every = list(inside.finditer(text, start))
    closing = _closing(every)
    last = _last_before(text, closing, every, is_next) if wraps else None
    if last is not None:
        closing = [last]
    elif wraps and closing and len(closing) % 2 == 0:  # pairs of marks inside, unless it was closed twice over
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


def _last_before(
    text: str, closing: list[re.Match[str]], every: list[re.Match[str]], is_next: Begins
) -> re.Match[str] | None:
    """The first line that can close a block and that something else follows."""
    starts = {line.start(): after.start() for line, after in pairwise(every)}
    found = (line for line in closing if is_next(text[line.end() : starts.get(line.start(), len(text))]))
    return next(found, None)


def _closing(lines: list[re.Match[str]]) -> list[re.Match[str]]:
    """Of lines of marks inside a block those that close no block with an info string."""
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
