"""Record the file line or variable of each setting, for error messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

Key = str | int
Route = tuple[Key, ...]
"""The path to a value: keys of mappings and positions in lists."""

Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]
Tree = dict[str, Value]


def dotted(route: Route) -> str:
    """Return a route as text, such as `limits.calls` or `allow[2]`. Positions in lists count from 1."""
    text = ""
    for key in route:
        text += f"[{key + 1}]" if isinstance(key, int) else f".{key}" if text else key
    return text


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was set: a position in the file (line and column, counted from 1), or a variable."""

    line: int = 0
    column: int = 0
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in the settings, and where it is."""

    where: str
    what: str
    order: tuple[int, int, str]

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(slots=True)
class Places:
    """The places of all keys and values of one file, and the problems that were found while the file was read."""

    path: Path
    keys: dict[Route, Place] = field(default_factory=dict[Route, Place])
    values: dict[Route, Place] = field(default_factory=dict[Route, Place])
    problems: list[Problem] = field(default_factory=list[Problem])

    def problem(self, route: Route, what: str, *, at_key: bool = False) -> Problem:
        """Return a Problem at `route`. If the place of the route is unknown, use the nearest enclosing section
        whose place is known."""
        first, second = (self.keys, self.values) if at_key else (self.values, self.keys)
        for length in range(len(route), -1, -1):
            place = first.get(route[:length]) or second.get(route[:length])
            if place is not None:
                return self.problem_at(place, what)
        return self.problem_at(Place(line=1, column=1), what)

    def problem_at(self, place: Place, what: str) -> Problem:
        """Return a Problem at a place."""
        if place.variable is not None:
            return Problem(f"environment variable {place.variable}", what, (1 << 30, 0, place.variable))
        where = f"{self.path}:{place.line}:{place.column}"
        return Problem(where, what, (place.line, place.column, ""))
