"""Settings from the environment: `ARTOO_` and the setting's route, joined by two underscores.

`ARTOO_CONTROL__DELTA=0.2` is `control.delta`, `ARTOO_WORKSPACE=~/out` is `workspace`. A variable with a double
underscore that names no setting is a mistake like an unknown key; others that begin with ARTOO_ are not ours to
judge. Lists are one line per value.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from pydantic import BaseModel

from artoo.runtime.config import Config
from artoo.settings.places import Place, Places, Problem, Route, Tree, Value

PREFIX, JOINT = "ARTOO_", "__"


def variables() -> dict[str, Route]:
    """Every variable that sets something, with the setting's route."""
    return {PREFIX + JOINT.join(str(key).upper() for key in route): route for route in _routes(Config)}


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
    """Lays the environment over `tree`, noting where each value came from. Returns the variables that are wrong."""
    given = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    if not given:
        return []
    known, problems = variables(), list[Problem]()
    for name, value in sorted(given.items()):
        place = Place(variable=name)
        if name in known:
            _set(tree, known[name], value)
            places.values[known[name]] = place
        elif JOINT in name:
            near = get_close_matches(name, known, n=1, cutoff=0.75)
            hint = f"; did you mean {near[0]}?" if near else ""
            problems.append(places.problem_at(place, f"names no setting{hint}"))
    return problems


def _set(tree: Tree, route: Route, text: str) -> None:
    """Puts `text` at `route`. An empty variable unsets what the file says."""
    section = tree
    for key in route[:-1]:
        inner = section.get(str(key))
        if inner is None:
            inner = section[str(key)] = dict[str, Value]()
        if not isinstance(inner, dict):  # a mistake of the file, named as such
            return
        section = inner
    last = str(route[-1])
    if text == "":
        section.pop(last, None)
    else:
        lines: list[Value] = [line for line in text.splitlines() if line.strip()]
        section[last] = lines if "\n" in text else text
