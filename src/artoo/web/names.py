"""The choice of a web page's language, and the names of roles and states on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from artoo.words.catalogue import ENGLISH, Catalogue, in_language
from artoo.words.names import DECIDERS, DIRECTIVES, ROLES

NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "role": ROLES,
    "directive": DIRECTIVES,
    "decider": DECIDERS,
    "deed": {
        "user": "asks",
        "perceiver": "understands",
        "planner": "plans",
        "dispatcher": "assigns",
        "executor": "executes",
        "agent_validator": "validates",
        "meta_validator": "measures",
        "solver": "decides",
    },
    "task": {
        "running": "running",
        "not ended": "stopped early",
        "accept": "done",
        "success": "done, with gaps",
        "abandon": "gave up",
        "interrupted": "interrupted",
    },
    "consent": {
        "once": "yes",
        "task": "yes, for this task",
        "no": "no",
        "keep": "kept for later",
        "discard": "discarded",
    },
    "change": {
        "persistence": "start-up, hook or editor file",
        "history": "git history",
        "special": "special file",
        "elsewhere": "outside the project",
        "silent": "new",
    },
    "board": {"in_progress": "in progress"},
    "step": {"done": "done", "in_progress": "in progress", "pending": "to do"},
    "finding": {
        "violation": "Violations of invariants",
        "anomaly": "Anomalies",
        "drift": "Drift of figures",
        "loss": "Lost messages",
    },
    "chain": {"closed": "in order", "running": "is being written", "died": "its process died"},
    "anchor": {
        "opened": "started",
        "head": "anchored",
        "closed": "closed in order",
        "died": "its process died",
        "retired": "removed because of its age",
    },
    "advice": {"exploit": "prefer", "caution": "be careful", "ignore": "no advice"},
    "pulse": {"run": "worked", "idle": "nothing to do"},
}
"""The names by kind. A name that is missing here is shown unchanged."""


def named(kind: str, name: str) -> str:
    """Return the English name that the page shows, which is also the key for its translation."""
    return NAMES[kind].get(name, name)


def chosen_language(cookie: str, accepted: str) -> Catalogue:
    """Return the language that the user chose, or else the first accepted language that artoo has."""
    if cookie in ("en", "zh"):
        return in_language(cookie)
    for part in accepted.split(","):
        tag = part.partition(";")[0].strip().lower()
        if tag.startswith(("zh", "en")):
            return in_language(tag)
    return ENGLISH
