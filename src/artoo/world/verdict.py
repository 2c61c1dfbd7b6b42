"""What somebody who knows a kind of file says of a path: its class, whatever its name would make of it."""

from __future__ import annotations

from dataclasses import dataclass

from artoo.contracts.settling import ChangeClass


@dataclass(frozen=True, slots=True)
class Verdict:
    """A class of `classes`, and why."""

    change_class: ChangeClass
    reason: str = ""


SILENT = Verdict(ChangeClass.SILENT)
PROGRAMS = Verdict(ChangeClass.PERSISTENCE, "runs or configures programs later")
