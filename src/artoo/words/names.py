"""English display names of roles, directives, deciders and assurances."""

from __future__ import annotations

from typing import Final

from artoo.contracts.solution import Decided, Directive
from artoo.words.catalogue import Catalogue

ROLES: Final = {"user": "you", "agent_validator": "validator", "meta_validator": "meta-validator"}

DIRECTIVES: Final = {
    "accept": "accepted",
    "success": "good enough, with gaps",
    "abandon": "stops here",
    "break_symmetry": "dead end: other tools",
    "change_approach": "wrong way: another approach",
    "change_path": "right way, stuck: another path",
    "refine": "getting there: fixes what is missing",
    "init": "start",
}
"""The names of directives (macro-states). A name gives the finding of the control law, and its consequence."""

DECIDERS: Final = {"nobody": "open"}
"""The names of deciders. A verdict without a decider is called open."""

ASSURANCE: Final = {
    "checked": "Checked.",
    "agreed": "Two ways agree.",
    "judged": "Judged, not checked.",
    "unverified": "Not confirmed by anything.",
}
"""How an answer was confirmed."""


def role_name(name: str, text: Catalogue) -> str:
    """Return the name of a role in the language of `text`."""
    return text(ROLES.get(name, name))


def directive_name(name: str, text: Catalogue) -> str:
    """Return the name of a directive in the language of `text`."""
    return text(DIRECTIVES.get(name, name))


def led_to(decided: Decided, text: Catalogue) -> str:
    """Describe the decision after a round. A success without failures is called "answered, not confirmed"."""
    failed = decided.logical_failures + decided.environmental_failures
    if decided.directive is Directive.SUCCESS and not failed:
        return text("answered, not confirmed")
    return directive_name(decided.directive.value, text)
