"""Compile glob patterns (`*`, `?`, `[…]`, `**`, `{a,b}`) for paths.

`*`, `?` and `[...]` match within one component of the path. `**` matches any number of components.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass

from artoo.contracts.errors import ToolError

_MAX_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")

_Names = tuple[re.Pattern[str] | None, ...]
"""One regular expression for each component of a pattern. None stands for `**`."""


@dataclass(frozen=True, slots=True)
class PathPattern:
    """Alternative patterns. A path matches if it matches one of them. Matching is case-sensitive, like the file
    system."""

    alternatives: tuple[_Names, ...]

    def matches(self, path: str) -> bool:
        """Check whether a whole path matches. The path is relative to the root, with `/` between its components."""
        names = path.split("/")
        return any(_fits(pattern, names) for pattern in self.alternatives)


def path_pattern(text: str) -> PathPattern:
    """Compile a pattern, in which `{a,b}` are alternatives.

    A pattern without a slash matches names at any depth, and `src/*.py` matches at any depth below `src`. People
    and models mean that when they ask for the files of a directory. `./*.py` and `./src/*.py` match only in that
    directory.

    Raises ToolError if the pattern has too many alternatives.
    """
    return PathPattern(tuple(_names(one) for one in _expanded(text)))


def _names(pattern: str) -> _Names:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    anchored = pattern.startswith("./") or "**" in parts
    if "/" not in pattern or (not anchored and parts and "*" in parts[-1]):
        parts = [*parts[:-1], "**", *parts[-1:]]
    return tuple(None if part == "**" else re.compile(fnmatch.translate(part)) for part in parts)


def _expanded(pattern: str) -> list[str]:
    done: list[str] = []
    todo = [pattern]
    while todo:
        one = todo.pop(0)
        braces = _BRACES.search(one)
        if braces is None:
            done.append(one)
        else:
            todo += [one[: braces.start()] + part + one[braces.end() :] for part in braces.group(1).split(",")]
        if len(done) + len(todo) > _MAX_ALTERNATIVES:
            raise ToolError(f"{pattern!r} has more than {_MAX_ALTERNATIVES} alternatives; use fewer braces")
    return done


def _fits(pattern: _Names, names: Sequence[str]) -> bool:
    """Match the components of a path one by one. All positions in the pattern that fit so far are tracked."""
    states = _past_stars(pattern, {0})
    for name in names:
        following: set[int] = set()
        for state in states:
            if state == len(pattern):
                continue
            expression = pattern[state]
            if expression is None:
                following.add(state)
            elif expression.fullmatch(name):
                following.add(state + 1)
        states = _past_stars(pattern, following)
    return len(pattern) in states


def _past_stars(pattern: _Names, states: set[int]) -> set[int]:
    """Add the positions in the pattern that follow if a `**` matches no component."""
    reached = set(states)
    for state in sorted(states):
        while state < len(pattern) and pattern[state] is None:
            state += 1
            reached.add(state)
    return reached
