"""Patterns for paths, name by name: `*`, `?` and `[...]` stay within one name, `**` is any depth."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass

from artoo.contracts.errors import ToolError

_MAX_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")

_Names = tuple[re.Pattern[str] | None, ...]
"""One expression a name, None for `**`."""


@dataclass(frozen=True, slots=True)
class PathPattern:
    """Alternatives, of which a path must match one. Case matters, as it does to the file system."""

    alternatives: tuple[_Names, ...]

    def matches(self, path: str) -> bool:
        """Check whether a path relative to the root, with `/`, fits as a whole."""
        names = path.split("/")
        return any(_fits(pattern, names) for pattern in self.alternatives)


def path_pattern(text: str) -> PathPattern:
    """Read a pattern; `{a,b}` are alternatives.

    One without a slash matches names at any depth, and `src/*.py` any depth below `src`, as people (and models)
    mean it who ask for the files of a directory; `./*.py` and `./src/*.py` match at that place only.

    Raises ToolError when it has too many alternatives.
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
    """Check the names one by one against the prefixes of the pattern that can stand for them so far."""
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
    """Add the states that `**` reaches by standing for nothing."""
    reached = set(states)
    for state in sorted(states):
        while state < len(pattern) and pattern[state] is None:
            state += 1
            reached.add(state)
    return reached
