"""Git's own files in a change set: which ones git brings over, and what the rest means as files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from artoo.contracts.changes import Node
from artoo.contracts.settling import ChangeClass
from artoo.workspace.changes.effect import Effect
from artoo.workspace.changes.verdict import Verdict
from artoo.workspace.git.layout import Part, Repository, part_of

SILENT = Verdict(ChangeClass.SILENT)
PROGRAMS = Verdict(ChangeClass.PERSISTENCE, "git starts programs from there, or reads where they are")
SUSPECT = "git would take this directory for a repository, and start what its settings and hooks say"
_UNKNOWN = Verdict(ChangeClass.PERSISTENCE, "it is in a repository, and not part of the layout that git documents")
_CUT = Verdict(ChangeClass.HISTORY, "it changes how much of the history git shows")
ENDED = Verdict(
    ChangeClass.HISTORY, "it ends an operation of git that was under way: a merge or a rebase, given up"
)

_TAKEN = frozenset({Part.STATE, Part.INDEX, Part.LOCK, Part.SCRATCH})
_MARKS = re.compile(
    r"(MERGE_HEAD|MERGE_AUTOSTASH|CHERRY_PICK_HEAD|REVERT_HEAD|BISECT_(LOG|START)|rebase-(merge|apply)|sequencer"
    r"|NOTES_MERGE_[A-Z]+)(/.*)?"
)
"""What says that an operation is under way; the rest of its files (a message, for example) says nothing alone."""

COMMITTED = frozenset({"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"})
"""Marks that git removes when the operation has become a commit."""


def is_taken(effect: Effect, inner: str) -> bool:
    """True for what git brings over, or writes again by itself: such an effect is never applied as a file."""
    part = part_of(inner)
    if part is Part.OPERATION:
        return effect.after is not None
    return part in _TAKEN or (effect.in_place and part is not Part.UNKNOWN) or _is_plain(effect, inner)


def _is_plain(effect: Effect, inner: str) -> bool:
    """True for hooks that cannot run and directories that git makes when they are needed."""
    if effect.after is None or effect.before is not None:
        return False
    if effect.after.is_directory:
        return inner in ("hooks", "info", "modules", "branches") or part_of(inner) is Part.NESTED
    return inner.startswith("hooks/") and inner.endswith(".sample") and effect.after.node is Node.FILE


def judge_files(repository: Repository) -> dict[bytes, Verdict]:
    """Return the class of those files of a repository that stay file changes, unfinished operations left out."""
    return {one.path: verdict for inner, one in repository.effects.items() if (verdict := _verdict(inner, one))}


def _verdict(inner: str, effect: Effect) -> Verdict | None:
    if is_taken(effect, inner):
        return None
    match part_of(inner):
        case Part.PROGRAMS:
            return _CUT if inner in ("shallow", "info/grafts") else PROGRAMS
        case Part.UNKNOWN | Part.NESTED:
            return _UNKNOWN
        case Part.OPERATION:
            return ENDED
        case _:
            return None


def begun(repository: Repository) -> str:
    """Return the mark of an operation that is under way in the task's version; empty: there is none."""
    marks = (inner for inner, one in repository.effects.items() if one.after is not None and not one.in_place)
    return next((inner.partition("/")[0] for inner in marks if _MARKS.fullmatch(inner)), "")


def ended(repository: Repository) -> Mapping[str, Effect]:
    """Return what the task removed of operations that were under way."""
    return {inner: one for inner, one in repository.effects.items() if _is_ended(inner, one)}


def _is_ended(inner: str, effect: Effect) -> bool:
    return part_of(inner) is Part.OPERATION and effect.after is None


def ended_marks(repository: Repository) -> Iterator[str]:
    """Return the marks among what was removed."""
    return (inner for inner in ended(repository) if _MARKS.fullmatch(inner))
