"""Build the approval question for a change set, most dangerous first, with the limit on its diff lines.

An answer is valid only for the digest of this change set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from artoo.contracts.changes import ChangeKind, Conflict, path_bytes
from artoo.contracts.confirmation import AskedAct, ConfirmationRequest
from artoo.contracts.settling import ChangeClass, ClassifiedChange, Review, counts_of, in_order_of_danger
from artoo.ports.workspace import Files
from artoo.tools.files.paths import size_text
from artoo.tools.files.text_files import NotPlainFile, read_limited
from artoo.tools.files.unified_diff import plain, unified
from artoo.words.catalogue import in_language, word
from artoo.words.settling import counted, title, why
from artoo.workspace.changes.change_set import ChangeSet

DIFF_BYTES = 64 * 1024
"""Maximum size in bytes of a file that is shown with a diff. It applies to the file before and after the task."""

_MOST_DIFF_LINES = 20_000
"""Maximum number of diff lines in one review. Only the size of further files is shown; `artoo diff` shows single
files."""

_VERBS = {
    ChangeClass.EDIT: "edits",
    ChangeClass.DELETION: "delete",
    ChangeClass.MODE: "mode",
    ChangeClass.LINK: "link",
    ChangeClass.HISTORY: "history",
    ChangeClass.SPECIAL: "special",
}
_KIND_VERBS = {
    ChangeKind.CREATED: "create",
    ChangeKind.DELETED: "delete",
    ChangeKind.METADATA: "mode",
    ChangeKind.LINK: "link",
}


def verb_of(change: ClassifiedChange) -> str:
    """Return the verb by which policies name a change that needs approval."""
    return _VERBS.get(change.change_class) or _KIND_VERBS.get(change.kind, "edits")


def act_of(change: ClassifiedChange) -> AskedAct:
    """Return the operation that a standing permission must cover to approve this change."""
    sensitive = change.change_class is ChangeClass.PERSISTENCE
    return AskedAct(verb=verb_of(change), target=change.path, sensitive=sensitive)


def review_of(
    change_set: ChangeSet,
    task_id: str,
    before: Files,
    after: Files,
    *,
    unfinished: bool = False,
    went_out: tuple[str, ...] = (),
) -> Review:
    """Build the review of a change set. Small text files are read for their diffs. Blocking.

    `before` are the user's files, `after` the files as the task left them.
    """
    left = _MOST_DIFF_LINES
    changes: list[ClassifiedChange] = []
    classes = change_set.all_classes
    moved = _moved(classes)
    for one in in_order_of_danger(classes):
        lines = diff_of(one, before, after) if left > 0 and one.path not in moved else ()
        left -= len(lines)
        changes.append(one.model_copy(update={"diff": lines if left >= 0 else ()}))
    return Review(
        task_id=task_id,
        counts=counts_of(classes),
        changes=tuple(changes),
        conflicts=tuple(_both_versions(one, before, after) for one in change_set.all_conflicts),
        unfinished=unfinished,
        went_out=went_out,
    )


def _moved(changes: Sequence[ClassifiedChange]) -> frozenset[str]:
    """Return both paths of each file that was only moved, because moving neither loses nor adds content."""
    went = {one.path: one.moved_to for one in changes if one.moved_to is not None}
    targets = frozenset(went.values())
    made = (one.path for one in changes if one.kind is ChangeKind.CREATED and one.path in targets)
    return frozenset((*went, *made))


def question_of(change_set: ChangeSet, review: Review, language: str) -> ConfirmationRequest:
    """Build the question to the user. If it is approved, the change set is applied."""
    acts = [act_of(one) for one in review.changes if one.change_class is not ChangeClass.SILENT]
    if change_set.flood is not None:
        acts.append(AskedAct(verb="flood", target=change_set.flood))
    return ConfirmationRequest(
        digest=change_set.digest,
        title=title(counted(review.counts, in_language(language)), language, unfinished=review.unfinished),
        details=tuple(_lines(change_set, review, language)),
        acts=tuple(acts),
        language=language,
        review=review,
    )


def diff_of(change: ClassifiedChange, before: Files, after: Files) -> tuple[str, ...]:
    """Return the diff of a small text file. Return "" for other files, of which only the size is shown."""
    if change.kind not in (ChangeKind.CREATED, ChangeKind.OVERWRITTEN, ChangeKind.DELETED):
        return ()
    if max(change.size_after or 0, change.size_before or 0) > DIFF_BYTES:
        return ()
    old = b"" if change.size_before is None else content_of(before, change.path)
    new = b"" if change.size_after is None else content_of(after, change.path)
    return () if old is None or new is None else unified(old, new)


def _both_versions(conflict: Conflict, before: Files, after: Files) -> Conflict:
    """Add the diff from the user's version to the task's version of a file, if both are small texts or one does not
    exist."""
    mine, its = (
        b"" if files.stat(_path(conflict.path)) is None else content_of(files, conflict.path)
        for files in (before, after)
    )
    diff = () if mine is None or its is None else unified(mine, its)
    deleted = after.stat(_path(conflict.path)) is None
    return conflict.model_copy(update={"diff": diff, "deleted": deleted})


def _path(printable: str) -> Path:
    return Path(os.fsdecode(path_bytes(printable)))


def content_of(files: Files, path: str) -> bytes | None:
    """Return the first bytes of the file at a printable path. Return None if it is not a regular file."""
    try:
        return read_limited(files, _path(path), DIFF_BYTES)[0]
    except (OSError, NotPlainFile):
        return None


def _lines(change_set: ChangeSet, review: Review, language: str) -> Iterator[str]:
    if change_set.flood is not None:
        yield change_set.flood
    for conflict in review.conflicts:
        yield f"{word('conflict', language)} {conflict.path}: {word(conflict.reason, language)}"
    for one in review.changes:
        yield line_of(one, language)
        yield from (f"    {line}" for line in one.diff if one.change_class is not ChangeClass.SILENT)
    for each in review.went_out:
        yield f"{word('went out', language)}: {each}"


def line_of(change: ClassifiedChange, language: str = "en") -> str:
    """Describe a change in one line: its class, path, sizes, and the reason why it needs approval."""
    what = word(change.change_class.value, language)
    head = " ".join(filter(None, (what, change.path, _sizes(change), plain(change.detail))))
    return f"{head}: {why(change, language)}" if change.reason else head


def _sizes(change: ClassifiedChange) -> str:
    before, after = change.size_before, change.size_after
    if before is not None and after is not None:
        return f"({size_text(before)} → {size_text(after)})"
    known = after if before is None else before
    return "" if known is None else f"({size_text(known)})"
