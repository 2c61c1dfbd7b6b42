"""Find Markdown fenced code blocks in a model's text.

The functions are pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPENING = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)$", re.MULTILINE)
_MOST_FENCES = 64
_HOLDS_FENCES = frozenset({"markdown", "md"})


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block, with its position, info string and text. Newlines join the lines of the text, and none
    follows the last line. If all lines are empty, each keeps its newline, so that one empty line is different from
    no line.

    `closed` is False if the text ended before the block did.
    """

    start: int
    end: int
    info: str
    text: str
    closed: bool


def fences_in(text: str) -> list[Fence]:
    """Return the blocks of a text in order. A block ends at the first line that contains only marks, at least as
    many as the opening line, unless this line ends a block inside it. Inner blocks are recognised by their info
    string. A block of Markdown ends as `wrapping` describes.
    """
    found: list[Fence] = []
    position = 0
    while len(found) < _MOST_FENCES and (opening := _OPENING.search(text, position)) is not None:
        wraps = opening.group(2).strip().lower() in _HOLDS_FENCES
        found.append(_fence(text, opening, wraps=wraps))
        position = found[-1].end
    return found


def wrapping(text: str) -> Fence | None:
    """Return the block at the beginning of a text, even if it contains other blocks. It ends at the last line that
    can close it. If all such lines belong to blocks inside it, it ends at the end of the text.
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
    # the marks inside are in pairs, unless the block was closed twice
    if wraps and closing and len(closing) % 2 == 0:
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
    """Return the lines of marks that do not close an inner block with an info string."""
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
