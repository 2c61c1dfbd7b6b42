"""The parser of a selection of changes, by numbers, ranges, paths or directories."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from artoo.cli.results.relative_paths import Here, holds
from artoo.contracts.settling import ClassifiedChange, with_arrivals

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def chosen(typed: str, listed: Sequence[ClassifiedChange], here: Here) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the paths that `typed` selects, in the order of the list. Also return the parts of `typed` that select
    none.

    A number is a position in the list (from 1), unless a path in the list has this name. A directory selects all
    paths below it. A moved file is selected together with its new path.
    """
    wanted: set[str] = set()
    unknown: list[str] = []
    for part in _parts(typed):
        # Paths are tried first, because the name of a file may be a number.
        found = of_path(part, listed, here) or _of_numbers(part, listed)
        wanted |= with_arrivals(found, listed)
        if not found:
            unknown.append(part)
    return tuple(one.path for one in listed if one.path in wanted), tuple(unknown)


def of_path(typed: str, listed: Sequence[ClassifiedChange], here: Here) -> tuple[str, ...]:
    """Return the paths in the list that are `typed` or below it."""
    place = here.named(typed)
    return tuple(one.path for one in listed if holds(place, one.path))


def _of_numbers(part: str, listed: Sequence[ClassifiedChange]) -> tuple[str, ...]:
    match = _RANGE.fullmatch(part)
    if match is None:
        return ()
    first, last = int(match[1]), int(match[2] or match[1])
    return tuple(one.path for one in listed[first - 1 : last]) if 1 <= first <= last <= len(listed) else ()


def _parts(typed: str) -> list[str]:
    """Split words as a shell does, so that a path with spaces can be put in quotes. Commas separate only
    numbers."""
    lexer = shlex.shlex(typed, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    # A backslash is no escape here, because printable paths contain backslashes.
    lexer.escape = ""
    try:
        parts = list(lexer)
    except ValueError:
        # a quote is not closed
        parts = typed.split()
    return [piece for part in parts for piece in (part.split(",") if _is_numbers(part) else [part]) if piece]


def _is_numbers(part: str) -> bool:
    return all(_RANGE.fullmatch(piece) for piece in part.split(",") if piece)
