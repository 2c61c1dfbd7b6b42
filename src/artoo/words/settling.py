"""Sentences and counts about applied, discarded and pending changes, by class, and why a change needs approval."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from artoo.contracts.changes import Conflict
from artoo.contracts.settling import ChangeClass, ClassCount, ClassifiedChange
from artoo.words.catalogue import Catalogue, in_language, word

CLASSES = {
    ChangeClass.DELETION: "deleted",
    ChangeClass.PERSISTENCE: "runs later by itself",
    ChangeClass.HISTORY: "history rewritten",
    ChangeClass.SPECIAL: "special file",
    ChangeClass.ELSEWHERE: "outside project and workspace",
    ChangeClass.LINK: "link",
    ChangeClass.MODE: "mode or owner",
    ChangeClass.EDIT: "edited",
    ChangeClass.SILENT: "new",
}
"""The names of the classes of changes."""

_CONFLICTS_SHOWN = 5


def why(change: ClassifiedChange, language: str, shown: Callable[[str], str] = str) -> str:
    """Explain why a change needs approval; empty if it needs none. `shown` formats the new path of a moved file."""
    reason = word(change.reason, language)
    return reason if change.moved_to is None else f"{reason} {shown(change.moved_to)}"


def counted(counts: Sequence[ClassCount], text: Catalogue) -> str:
    """Return the number of changes of each class, most dangerous first, such as `2 deleted, 1 link, 3 edited`."""
    return text(", ").join(part for one in counts for part in _parts(one, text))


def _parts(count: ClassCount, text: Catalogue) -> tuple[str, ...]:
    if told := rewritten(count, text):
        return (told,)
    other = {"moved": text("moved"), "harmless": text("harmless")}
    own = text(CLASSES[count.change_class])
    return tuple(f"{number:,} {other.get(name, own)}" for name, number in count.parts)


def rewritten(count: ClassCount, text: Catalogue) -> str:
    """Return a text like `2 branches, 1 tag rewritten (11 commits)`, or an empty text without branches and tags."""
    parts = [text.count("{count} branch", "{count} branches", count.branches)] if count.branches else []
    parts += [text.count("{count} tag", "{count} tags", count.tags)] if count.tags else []
    if not parts:
        return ""
    lost = text.count(" ({count} commit)", " ({count} commits)", count.commits) if count.commits else ""
    return text("{what} rewritten", what=text(", ").join(parts)) + lost


def title(what: str, language: str, *, unfinished: bool) -> str:
    """Return the question for approval in one line. `what`: the counts of the changes."""
    text = in_language(language)
    before = text("the task was not finished; ") if unfinished else ""
    return before + text("apply what the task changed: {what}", what=what)


def why_it_waits(conflicts: Sequence[Conflict], language: str, *others: str) -> str:
    """Return the reasons why changes are pending, or an empty text if they only need approval.

    The caller adds how to approve them, because this differs between the interfaces.
    """
    return joined(*others, met(conflicts, language) if conflicts else "")


def waiting(reason: str, counts: Sequence[ClassCount], conflicts: int, language: str) -> str:
    """Return the reason and the counts of pending changes in one sentence, where no list of changes is shown.

    If only conflicts are left, the sentence says that the user's version stays.
    """
    # New files need no approval, so they are counted only if nothing else is pending.
    loud = [each for each in counts if each.change_class is not ChangeClass.SILENT] or list(counts)
    text = in_language(language)
    what = counted(loud, text)
    if what:
        return joined(reason, text("pending your approval: {what}", what=what))
    return joined(reason, text("your version stays") if conflicts else "")


def dropped(language: str) -> str:
    """Return the sentence that the changes described by an answer were discarded."""
    return in_language(language)("the changes were discarded; none of them took effect")


def not_yet(waits: str, language: str) -> str:
    """Return the sentence that an answer's changes are pending. `waits`: the text that `waiting` returns."""
    return in_language(language)("Not done yet: {waits}", waits=waits)


def unfinished(language: str) -> str:
    """Return the reason why changes that need no approval were not applied."""
    return in_language(language)("the task was not finished")


def kept_in_memory(language: str) -> str:
    """Return the warning that pending changes are lost when the machine restarts."""
    return in_language(language)(
        "artoo's home (ARTOO_HOME) is on a file system in memory: pending changes are lost at a reboot"
    )


def rest_by_hand(language: str) -> str:
    """Return the sentence that the user applied or discarded the rest while the task was interrupted."""
    return in_language(language)("you applied or discarded the other changes while the task was interrupted")


def met(conflicts: Sequence[Conflict], language: str) -> str:
    """List the conflicts in one sentence, at most `_CONFLICTS_SHOWN` by name."""
    text = in_language(language)
    shown = ", ".join(f"{one.path} ({one.reason})" for one in conflicts[:_CONFLICTS_SHOWN])
    more = len(conflicts) - _CONFLICTS_SHOWN
    rest = text(" and {count} more", count=more) if more > 0 else ""
    return text("in conflict with what is there now: {paths}", paths=shown + rest)


def joined(*parts: str) -> str:
    """Join the parts that are not empty."""
    return "; ".join(part for part in parts if part)
