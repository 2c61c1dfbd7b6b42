"""A part of a review, as a person names it: numbers of its list, ranges, paths, directories."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from artoo.cli.results.relative_paths import Here, holds
from artoo.contracts.settling import ClassifiedChange, with_arrivals

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def chosen(typed: str, listed: Sequence[ClassifiedChange], here: Here) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find the paths that `typed` names, in the order of the list, and the parts that name none.

    A number is a place in the list (from 1), unless it is the name of a path in it; a directory is all below it.
    With what is moved goes where it stands now.
    """
    wanted: set[str] = set()
    unknown: list[str] = []
    for part in _parts(typed):
        # A path comes first: a file may have the name of a number.
        found = of_path(part, listed, here) or _of_numbers(part, listed)
        wanted |= with_arrivals(found, listed)
        if not found:
            unknown.append(part)
    return tuple(one.path for one in listed if one.path in wanted), tuple(unknown)


def of_path(typed: str, listed: Sequence[ClassifiedChange], here: Here) -> tuple[str, ...]:
    """Find the listed paths that are `typed` or lie below it."""
    place = here.named(typed)
    return tuple(one.path for one in listed if holds(place, one.path))


def _of_numbers(part: str, listed: Sequence[ClassifiedChange]) -> tuple[str, ...]:
    match = _RANGE.fullmatch(part)
    if match is None:
        return ()
    first, last = int(match[1]), int(match[2] or match[1])
    return tuple(one.path for one in listed[first - 1 : last]) if 1 <= first <= last <= len(listed) else ()


def _parts(typed: str) -> list[str]:
    """Split words like a shell, so that a path with spaces can be quoted; commas separate numbers only."""
    lexer = shlex.shlex(typed, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    # A backslash belongs to a printable path.
    lexer.escape = ""
    try:
        parts = list(lexer)
    except ValueError:
        # A quote is not closed.
        parts = typed.split()
    return [piece for part in parts for piece in (part.split(",") if _is_numbers(part) else [part]) if piece]


def _is_numbers(part: str) -> bool:
    return all(_RANGE.fullmatch(piece) for piece in part.split(",") if piece)
