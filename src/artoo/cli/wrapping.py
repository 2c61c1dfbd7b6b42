"""Lines that are longer than the terminal end between words there, and not in the middle of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_PIECE = re.compile(r"\S+|[^\S\n]+")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DEEPEST = 8
"""Columns that continued lines are set in at most."""
_FENCES = ("```", "~~~")


def cells(text: str) -> int:
    """Columns that a line takes: wide characters count twice, colours nothing."""
    from rich.cells import cell_len  # wanted where something is long, and not at every start

    return cell_len(_COLOUR.sub("", text))


def folded(line: str, columns: int) -> list[str]:
    """The rows of one line, continued below where its own text begins.

    A word that is longer than a row (a path, a line of Chinese) is left to the terminal, which goes on where the
    row ends: so it can be copied in one piece. Colours stay with their words.
    """
    if (len(line) <= columns and line.isascii()) or cells(line) <= columns:
        return [line]
    bare = _COLOUR.sub("", line)
    indent = " " * min(_DEEPEST, len(bare) - len(bare.lstrip(" ")))
    rows, row, used = list[str](), "", 0
    for piece in _PIECE.findall(line):
        width, blank = cells(piece), not piece.strip()
        if row.strip() and used + (0 if blank else width) > columns:
            rows.append(row.rstrip())
            row, used = indent, len(indent)
        if not blank or row.strip() or not rows:
            row, used = row + piece, used + width
    return [*rows, row] if row.strip() or not rows else rows


def rows_of(lines: Iterable[str], columns: int) -> int:
    """Rows that these lines take on a terminal of so many columns."""
    width = max(1, columns)
    return sum(max(1, -(-cells(row) // width)) for line in lines for row in folded(line, width))


def fold_text(text: str, columns: int) -> str:
    """Sentences of artoo's own, of any number of lines."""
    return "\n".join(row for line in text.split("\n") for row in folded(line, columns))


def fold_prose(text: str, columns: int) -> str:
    """An answer: what is laid out by its lines (fenced, set in, a table's row) stays as it is."""
    return "\n".join(_prose_rows(text.split("\n"), columns))


def _prose_rows(lines: Iterable[str], columns: int) -> Iterator[str]:
    fenced = False
    for line in lines:
        fence = line.lstrip().startswith(_FENCES)
        fenced ^= fence
        if fenced or fence or line[:1] in (" ", "\t", "|"):
            yield line
        else:
            yield from folded(line, columns)
