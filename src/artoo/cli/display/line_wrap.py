"""Word wrap of long lines to the width of the terminal, with the marks of continuation rows, and tab width.

In a text about which a user decides, each continuation row begins with a mark (`fold_marked`). Without a mark, one
line of a diff, or one name with many blanks, could look like several lines. The mark is never further right than
the sign at the beginning of a diff line, so the text of a file cannot imitate it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_PIECE = re.compile(r"\S+|[^\S\n]+")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DEEPEST = 6
"""Maximum indentation of continuation rows, which is the column of the sign in a diff line (`review.layout`)."""
MARK, PLAIN_MARK = "\u21b3 ", "... "
"""The mark at the beginning of a continuation row, and its ASCII form for other encodings."""
_TAB = 8
"""Maximum number of columns of a tab. Every tab counts as this many columns, so that a line is wrapped too early
rather than too late."""
_FENCES = ("```", "~~~")


def cells(text: str) -> int:
    """Return the number of columns of a line. A wide character counts twice, and a colour code does not count."""
    # Imported here, because the import is slow and rarely needed. Most commands print no long line.
    from rich.cells import cell_len

    return cell_len(_COLOUR.sub("", text).replace("\t", " " * _TAB))


def folded(line: str, columns: int, mark: str = "") -> list[str]:
    """Split a line into rows. A continuation row begins with the indentation of the line, followed by `mark`.

    A word that is longer than a row (a path, or a line of Chinese) is left to the terminal to wrap, so that it can
    be copied in one piece. Colour codes stay with their words.
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
    # the code that ends a colour may follow blanks at the end
    rows[-1] += "".join(_COLOUR.findall(row))
    return rows


def rows_of(lines: Iterable[str], columns: int) -> int:
    """Return the number of rows that these lines take, including marks, on a terminal with `columns` columns."""
    width = max(1, columns)
    return sum(max(1, -(-cells(row) // width)) for line in lines for row in folded(line, width, MARK))


def fold_text(text: str, columns: int) -> str:
    """Wrap one of artoo's own sentences, without marks."""
    return "\n".join(row for line in text.split("\n") for row in folded(line, columns))


def fold_marked(text: str, columns: int, mark: str = MARK) -> str:
    """Wrap a text about which a user decides. By the mark, a continuation row can be distinguished from a line."""
    return "\n".join(row for line in text.split("\n") for row in folded(line, columns, mark))


def fold_prose(text: str, columns: int) -> str:
    """Wrap an answer, except lines that have a layout (fenced, indented, or rows of a table)."""
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
