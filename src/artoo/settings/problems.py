"""Turn validation errors of settings into sentences, with removed settings and suggestions.

Each sentence names the line.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, get_args, get_origin

from pydantic import BaseModel, ValidationError

from artoo.settings.places import Places, Problem, Route, Tree, dotted

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

SECRET_NAMES = frozenset({"api_key", "apikey", "key", "token", "secret", "password"})
# Settings that earlier versions had, with advice for each. They are ignored with a warning, so that old files still
# work after an update.
REMOVED = {
    "limits.tool_seconds": "a command goes on after its timeout, which the model gives with each call; delete it",
    "limits.steps": "an attempt ends with the task's budgets, or when it is stuck; delete it",
    "limits.subtask_seconds": "an attempt ends with the task's time (control.time_budget_ms); delete it",
}
# Maximum number of characters of a wrong value that a message quotes.
SHOWN = 60


def problems_of(
    tree: Tree, places: Places, model: type[BaseModel], whole: str = "the configuration"
) -> list[Problem]:
    """List every unknown key and every bad value of `tree` with its place. `tree` is validated as `model`. `whole`
    names the file."""
    try:
        model.model_validate(tree)
    except ValidationError as error:
        return [_problem(detail, places, model, whole) for detail in error.errors(include_url=False)]
    return []


def leave_out_removed(tree: Tree, places: Places) -> list[Problem]:
    """Remove settings from `tree` that only earlier versions had. Return one warning for each, with its place."""
    warnings = list[Problem]()
    for name, advice in REMOVED.items():
        section_name, key = name.split(".")
        section = tree.get(section_name)
        if isinstance(section, dict) and key in section:
            value = section.pop(key)
            what = f"{name} ({_short(value)}) is not read any more: {advice}"
            warnings.append(places.problem((section_name, key), what, at_key=True))
    return warnings


def report(problems: list[Problem], whole: str = "the configuration") -> str:
    """Return all problems as text, one on each line, in the order of the file."""
    ordered = sorted(problems, key=lambda problem: problem.order)
    if len(ordered) == 1:
        return str(ordered[0])
    return "\n".join([f"{whole} has {len(ordered)} problems:", *(f"  {problem}" for problem in ordered)])


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a user probably meant, for the question "did you mean". Return None if no known
    name is close enough."""
    # If the cutoff were lower, variables of other programs would be taken for settings.
    near = get_close_matches(name, list(known), n=1, cutoff=0.7)
    return near[0] if near else None


def _problem(detail: ErrorDetails, places: Places, model: type[BaseModel], whole: str) -> Problem:
    route: Route = detail["loc"]
    if detail["type"] == "extra_forbidden":
        return places.problem(route, _unknown(route, model, whole), at_key=True)
    return places.problem(route, _bad(route, detail, whole))


def _unknown(route: Route, model: type[BaseModel], whole: str) -> str:
    name = str(route[-1])
    if name.lower() in SECRET_NAMES:
        return (
            f"{dotted(route)} is not a setting: keys do not belong in this file;"
            " write api_key_env: NAME, the environment variable that holds it"
        )
    known = _names_at(route[:-1], model)
    near = nearest(name, known)
    around = dotted(route[:-1]) or whole
    hint = f"did you mean {near}?" if near else f"{around} knows: {', '.join(known)}"
    return f"{dotted(route)} is not a setting; {hint}"


def _bad(route: Route, detail: ErrorDetails, whole: str) -> str:
    name = dotted(route) or whole
    wanted = _wanted(detail)
    given: object = detail["input"]
    if route and route[-1] == "api_key_env":
        return f"{name} must be the name of an environment variable, never the key itself"
    if route and route[-1] == "base_url":
        return f"{name} must be an address like http://localhost:11434/v1, without a user name or key in it"
    if isinstance(given, dict | list | tuple | BaseModel):
        return f"{name} {wanted}"
    return f"{name} is {_short(given)}, but {wanted}{_near_choice(detail)}"


def _short(value: object) -> str:
    """Return a wrong value as text for a message. A long value is shortened."""
    shown = "empty" if value is None else repr(value)
    return shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…"


_WANTED = {
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "path_type": "must be a path",
    "tuple_type": "must be a list",
    "dict_type": "must be a section of the form `name: value`",
    "model_type": "must be a section of the form `name: value`",
    "model_attributes_type": "must be a section of the form `name: value`",
    "missing": "is missing",
}
_CHOICES = ("literal_error", "enum")
_BOUNDS = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}


def _wanted(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        return f"must be {words} {context[key]}"
    if kind in _CHOICES:
        return f"must be {context['expected']}"
    if kind == "value_error":
        return str(context["error"])
    return _WANTED.get(kind, detail["msg"][:1].lower() + detail["msg"][1:])


def _near_choice(detail: ErrorDetails) -> str:
    """Return `; did you mean …?` if a choice was misspelt."""
    if detail["type"] not in _CHOICES:
        return ""
    choices = [choice.strip("' ") for choice in detail.get("ctx", {})["expected"].replace(" or ", ",").split(",")]
    near = nearest(str(detail["input"]), choices)
    return f"; did you mean {near}?" if near else ""


def _names_at(route: Route, model: type[BaseModel]) -> list[str]:
    """Return the names of the settings that the section at `route` can have."""
    section, keys = model, iter(route)
    for key in keys:
        field = next(
            (field for name, field in section.model_fields.items() if key in (name, field.alias)),
            None,
        )
        inner: object = field.annotation if field is not None else None
        if get_origin(inner) is dict:  # This is a mapping from names that the user chose to sections.
            next(keys, None)
            inner = get_args(inner)[1]
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        section = inner
    return [field.alias or name for name, field in section.model_fields.items()]
