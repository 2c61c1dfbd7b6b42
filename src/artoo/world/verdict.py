"""What somebody who knows a kind of file says of a path: its class, whatever its name would make of it."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.settling import ChangeClass, Rewritten


@dataclass(frozen=True, slots=True)
class Verdict:
    """A class of `classes`, and why. `rewrites`: what the repository loses to which the path belongs."""

    change_class: ChangeClass
    reason: str = ""
    rewrites: Rewritten | None = None


SILENT = Verdict(ChangeClass.SILENT)
PROGRAMS = Verdict(ChangeClass.PERSISTENCE, "runs or configures programs later")
