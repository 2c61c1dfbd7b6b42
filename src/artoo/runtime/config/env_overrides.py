"""Override settings by environment variables such as `ARTOO_CONTROL__DELTA`.

`ARTOO_CONTROL__DELTA=0.2` is `control.delta`, `ARTOO_WORKSPACE=~/out` is `workspace`. Lists have one value per
line. A variable with a double underscore that names no setting is an error like an unknown key, and so is one that
names a whole section. Other variables that begin with ARTOO_ may belong to other programs. If such a name resembles
that of a setting, a warning is given.
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
"""The warnings that this process has already logged."""


def variables() -> dict[str, Route]:
    """Return every variable that sets a value, with the setting's route."""
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
    """Apply the environment to `tree` and note the source of each value. Return the variables that are wrong."""
    given = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    if not given:
        return []
    known, problems = variables(), list[Problem]()
    # Error messages use the first setting of each section as an example.
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
    """Log a warning about the configuration once, because a process reads it several times."""
    if str(warning) not in _said and len(_said) < _MOST_SAID:
        _said.add(str(warning))
        _log.warning("%s", warning)


def _hint(name: str, known: Mapping[str, Route]) -> str:
    near = nearest(name.removeprefix(PREFIX), (each.removeprefix(PREFIX) for each in known))
    return f"; did you mean {PREFIX}{near}?" if near else ""


def _set(tree: Tree, route: Route, text: str) -> None:
    """Set `text` at `route`. An empty text removes the value of the file."""
    section = tree
    for key in route[:-1]:
        inner = section.get(str(key))
        if inner is None:
            inner = section[str(key)] = dict[str, Value]()
        if not isinstance(inner, dict):  # an error in the file, which its own check reports
            return
        section = inner
    last = str(route[-1])
    if text == "":
        section.pop(last, None)
    else:
        lines: list[Value] = [line for line in text.splitlines() if line.strip()]
        section[last] = lines if "\n" in text else text
