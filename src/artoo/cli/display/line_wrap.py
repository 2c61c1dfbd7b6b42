"""Lines that are longer than the terminal end between words there, and not in the middle of one.

Of what a person decides about, every further row begins with a mark (`fold_marked`): a line of a diff or a name
with many blanks in it would look like several. The mark stands no further right than the sign of a diff's line,
so no text of a file can draw one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_PIECE = re.compile(r"\S+|[^\S\n]+")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DEEPEST = 6
"""Columns that continued lines are set in at most: where the sign of a diff's line stands (review.layout)."""
MARK, PLAIN_MARK = "\u21b3 ", "... "
"""What a further row begins with, and where the terminal's encoding has no such sign."""
_TAB = 8
"""Columns that a tab takes at most. It is given all of them: a line is folded too early rather than too late."""
_FENCES = ("```", "~~~")


def cells(text: str) -> int:
    """Count the columns of a line: wide characters count twice, colours nothing."""
    # Imported late: most starts have no long line.
    from rich.cells import cell_len

    return cell_len(_COLOUR.sub("", text).replace("\t", " " * _TAB))


def folded(line: str, columns: int, mark: str = "") -> list[str]:
    """Split a line into rows. Further rows begin where its own text begins, behind `mark`.

    A word that is longer than a row (a path, a line of Chinese) is left to the terminal, which goes on where the
    row ends: so it can be copied in one piece. Colours stay with their words.
    """
    if (len(line) <= columns and line.isascii() and "\t" not in line) or cells(line) <= columns:
        return [line]
    bare = _COLOUR.sub("", line)
    start = " " * min(_DEEPEST, len(bare) - len(bare.lstrip(" "))) + mark
    rows, row, used, filled = list[str](), "", 0, False
    for piece in _PIECE.findall(line):
        width, blank = cells(piece), not piece.strip()
        if filled and used + (0 if blank else width) > columns:
            rows.append(row.rstrip())
            row, used, filled = start, cells(start), False
        if not blank or filled or not rows:
            row, used = row + piece, used + width
            filled = filled or (width > 0 and not blank)
    if filled or not rows:
        return [*rows, row]
    # The end of a colour may stand behind blanks.
    rows[-1] += "".join(_COLOUR.findall(row))
    return rows


def rows_of(lines: Iterable[str], columns: int) -> int:
    """Count the rows of these lines on a terminal of so many columns, with marks."""
    width = max(1, columns)
    return sum(max(1, -(-cells(row) // width)) for line in lines for row in folded(line, width, MARK))


def fold_text(text: str, columns: int) -> str:
    """Fold sentences of artoo's own, of any number of lines."""
    return "\n".join(row for line in text.split("\n") for row in folded(line, columns))


def fold_marked(text: str, columns: int, mark: str = MARK) -> str:
    """Fold a text that a user decides about: each further row has a mark, so it looks like no line."""
    return "\n".join(row for line in text.split("\n") for row in folded(line, columns, mark))


def fold_prose(text: str, columns: int) -> str:
    """Fold an answer. Lines with a layout (fenced, indented, rows of a table) are kept as they are."""
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
