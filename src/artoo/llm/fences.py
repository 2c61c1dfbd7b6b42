"""Fenced blocks in what a model wrote (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPENING = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)$", re.MULTILINE)
_MOST_FENCES = 64
_HOLDS_FENCES = frozenset({"markdown", "md"})


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block: its place, info string and text (lines joined by newlines, none after the last).

    `closed` is False when the text ended first.
    """

    start: int
    end: int
    info: str
    text: str
    closed: bool


def fences_in(text: str) -> list[Fence]:
    """The blocks in order. A fence closes at the first line of at least as many of its marks and nothing else;
    one of Markdown, which may hold fences itself, at the last such line.
    """
    found: list[Fence] = []
    position = 0
    while len(found) < _MOST_FENCES and (opening := _OPENING.search(text, position)) is not None:
        found.append(_fence(text, opening))
        position = found[-1].end
    return found


def _fence(text: str, opening: re.Match[str]) -> Fence:
    marks, info = opening.group(1), opening.group(2).strip()
    start = min(opening.end() + 1, len(text))
    closing = re.compile(rf"^ {{0,3}}{re.escape(marks[0])}{{{len(marks)},}}[ \t]*$", re.MULTILINE)
    chosen = closing.search(text, start)
    if chosen is None:
        return Fence(opening.start(), len(text), info, text[start:].rstrip("\n"), closed=False)
    if info.lower() in _HOLDS_FENCES:
        *_, chosen = closing.finditer(text, start)
    inside = text[start : max(start, chosen.start() - 1)]
    return Fence(opening.start(), chosen.end(), info, inside, closed=True)
