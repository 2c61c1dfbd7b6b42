"""Reviews for the tests of the command line."""

from __future__ import annotations

from collections.abc import Mapping

from artoo.contracts.changes import ChangeKind, Conflict
from artoo.contracts.settling import (
    ChangeClass,
    ClassifiedChange,
    Review,
    counts_of,
    in_order_of_danger,
)

PROJECT = "/home/me/project"

KINDS = {
    ChangeClass.DELETION: ChangeKind.DELETED,
    ChangeClass.PERSISTENCE: ChangeKind.CREATED,
    ChangeClass.HISTORY: ChangeKind.OVERWRITTEN,
    ChangeClass.SPECIAL: ChangeKind.SPECIAL,
    ChangeClass.ELSEWHERE: ChangeKind.CREATED,
    ChangeClass.LINK: ChangeKind.LINK,
    ChangeClass.MODE: ChangeKind.METADATA,
    ChangeClass.EDIT: ChangeKind.OVERWRITTEN,
    ChangeClass.SILENT: ChangeKind.CREATED,
}


def change(
    change_class: ChangeClass, name: str, *, reason: str = "", diff: tuple[str, ...] = ()
) -> ClassifiedChange:
    """One change of a class; `name` is in the project unless it is absolute."""
    path = name if name.startswith("/") else f"{PROJECT}/{name}"
    return ClassifiedChange(
        path=path, change_class=change_class, kind=KINDS[change_class], reason=reason, diff=diff
    )


def review(*changes: ClassifiedChange, conflicts: Mapping[str, str] | None = None) -> Review:
    """Changes laid before a person; `conflicts` are names in the project, with their reasons."""
    ordered = in_order_of_danger(changes)
    clashes = tuple(
        Conflict(path=f"{PROJECT}/{name}", reason=why, diff=("-mine", "+its"))
        for name, why in (conflicts or {}).items()
    )
    return Review(task_id="t", counts=counts_of(ordered), changes=ordered, conflicts=clashes)


def small_review() -> Review:
    """One deletion and one edit: the whole of it fits on a screen."""
    return review(
        change(ChangeClass.DELETION, "docs/old.md", reason="is deleted"),
        change(ChangeClass.EDIT, "src/a.py", reason="what is there now is overwritten", diff=("-one", "+two")),
    )


def long_review() -> Review:
    """A deletion, a start-up file, and so many edits that their diffs need several screens."""
    lines = tuple(f"{'+-'[number % 2]}line {number}" for number in range(30))
    edits = [
        change(ChangeClass.EDIT, f"src/{number:02d}.py", reason="what is there now is overwritten", diff=lines)
        for number in range(5)
    ]
    return review(
        change(ChangeClass.DELETION, "docs/old.md", reason="is deleted"),
        change(ChangeClass.PERSISTENCE, ".git/hooks/pre-commit", reason="runs or configures programs later"),
        *edits,
    )


def crowded_review() -> Review:
    """One deletion among 300 files that run later and 300 edits."""
    return review(
        change(ChangeClass.DELETION, "thesis.tex", reason="is deleted"),
        *(change(ChangeClass.PERSISTENCE, f"hooks/{number:03d}", reason="runs later") for number in range(300)),
        *(change(ChangeClass.EDIT, f"src/{number:03d}.py") for number in range(300)),
    )
