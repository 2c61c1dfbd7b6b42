"""The class of a path that a specialist decided, whatever the table would make of it."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.settling import ChangeClass, Rewritten


@dataclass(frozen=True, slots=True)
class Verdict:
    """A class, and the reason shown to the user. `rewrites`: what the path's repository loses."""

    change_class: ChangeClass
    reason: str = ""
    rewrites: Rewritten | None = None
