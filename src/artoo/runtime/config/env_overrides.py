"""Override settings by environment variables such as `ARTOO_CONTROL__DELTA`.

`ARTOO_CONTROL__DELTA=0.2` is `control.delta`, `ARTOO_WORKSPACE=~/out` is `workspace`. A list has one value on each
line. A variable with a double underscore that names no setting, or names a whole section, is an error, like an
unknown key in the file. Other variables that begin with ARTOO_ may belong to other programs, so they are ignored.
If such a name resembles the name of a setting, a warning is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pydantic import BaseModel

from artoo.runtime.config.model import Config
from artoo.settings.places import Place, Places, Problem, Route, Tree, Value
from artoo.settings.problems import REMOVED, nearest

PREFIX, JOINT = "ARTOO_", "__"

_MOST_SAID = 20
_log = logging.getLogger(__name__)
_said: set[str] = set()
"""The warnings that this process has already logged, because each is logged only once."""


def variables() -> dict[str, Route]:
    """Return every environment variable that may set a value, with the path of the setting."""
    return {_variable(route): route for route in _routes(Config)}


def _variable(route: Route) -> str:
    return PREFIX + JOINT.join(str(key).upper() for key in route)


def _routes(section: type[BaseModel]) -> list[Route]:
    routes: list[Route] = []
    for name, field in section.model_fields.items():
        key, inner = field.alias or name, field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            routes += [(key, *rest) for rest in _routes(inner)]
        else:
            routes.append((key,))
    return routes


def overrides(tree: Tree, places: Places, environ: Mapping[str, str]) -> list[Problem]:
    """Set the values from the environment in `tree`, and record the source of each value. Return a problem for each
    variable that is wrong."""
    given = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    if not given:
        return []
    known, problems = variables(), list[Problem]()
    # Error messages name the first setting of each section as an example.
    routes = reversed(tuple(known.values()))
    sections = {_variable(route[:depth]): route for route in routes for depth in range(1, len(route))}
    for name, value in sorted(given.items()):
        place = Place(variable=name)
        if name in known:
            _set(tree, known[name], value)
            places.values[known[name]] = place
        elif name in sections:
            one = _variable(sections[name])
            problems.append(places.problem_at(place, f"is a whole section; set one of its settings, as in {one}=…"))
        elif JOINT in name:
            if advice := REMOVED.get(name.removeprefix(PREFIX).lower().replace(JOINT, ".")):
                warn_once(places.problem_at(place, f"is not read any more: {advice}"))
            else:
                problems.append(places.problem_at(place, f"names no setting{_hint(name, known)}"))
        elif hint := _hint(name, known):
            warn_once(f"nothing reads the environment variable {name}{hint}")
    return problems


def warn_once(warning: Problem | str) -> None:
    """Log a warning about the configuration only once, because a process reads the configuration several times."""
    if str(warning) not in _said and len(_said) < _MOST_SAID:
        _said.add(str(warning))
        _log.warning("%s", warning)


def _hint(name: str, known: Mapping[str, Route]) -> str:
    near = nearest(name.removeprefix(PREFIX), (each.removeprefix(PREFIX) for each in known))
    return f"; did you mean {PREFIX}{near}?" if near else ""


def _set(tree: Tree, route: Route, text: str) -> None:
    """Set the value of the setting at `route` to `text`. An empty text removes the value that the file has set."""
    section = tree
    for key in route[:-1]:
        inner = section.get(str(key))
        if inner is None:
            inner = section[str(key)] = dict[str, Value]()
        if not isinstance(inner, dict):  # the file has an error at this place, which the check of the file reports
            return
        section = inner
    last = str(route[-1])
    if text == "":
        section.pop(last, None)
    else:
        lines: list[Value] = [line for line in text.splitlines() if line.strip()]
        section[last] = lines if "\n" in text else text
